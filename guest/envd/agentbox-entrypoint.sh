#!/bin/sh
# The first program of a sandbox's main container: makes the account `user`, then becomes envd.
#
# POSIX sh without any other program where the account exists already: a Pod's start waits for this. Anything may be
# missing from an image, so every step may fail without stopping the start.
#
#   AGENTBOX_DIR             where envd lies (/mnt/agentbox)
#   AGENTBOX_IS_IDLE_IMAGE   "true", or the file /etc/agentbox_is_idle_image: a warm Pod's placeholder, which is swapped
#                            before anybody uses it; sleeps instead of starting envd
#   AGENTBOX_AWAIT_INIT      "false": answer calls before the first /init
#   AGENTBOX_ENVD_VERBOSE    "true": log every request
#   AGENTBOX_ENVD_FLAGS      more flags for envd
#   AGENTBOX_ROOT            tests only: the root whose files are changed ("")
set -u
umask 022
: "${AGENTBOX_DIR:=/mnt/agentbox}"
root=${AGENTBOX_ROOT:-}
profile=$root/etc/profile.d/zzz-agentbox-image-env.sh

if [ "${AGENTBOX_IS_IDLE_IMAGE:-}" = true ] || [ -e "$root/etc/agentbox_is_idle_image" ]; then
	if command -v sleep >/dev/null 2>&1; then
		exec sleep infinity
	fi
fi

# scan FILE: $found, the third field of the line "user:..."; $ids, all third fields; $broken, a newline when the last
# line lacks it.
scan() {
	found="" ids=' ' broken=""
	[ -r "$1" ] || return 0
	while IFS=: read -r name _ id _ || { [ -n "$name" ] && broken='
'; }; do
		[ "$name" = user ] && found=$id
		ids="$ids$id "
		[ -n "$broken" ] && break
	done <"$1"
}

# Sets $free to the first number from $1 on that is not in $ids.
pick() {
	free=$1
	while :; do
		case $ids in
		*" $free "*) free=$((free + 1)) ;;
		*) break ;;
		esac
	done
}

make_account() {
	[ -e "$root/etc/passwd" ] || echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd" || return
	[ -e "$root/etc/group" ] || echo 'root:x:0:' >"$root/etc/group" || return
	scan "$root/etc/passwd"
	[ -n "$found" ] && return
	pick 1000
	uid=$free line=$broken
	shell=/bin/sh
	[ -x "$root/bin/bash" ] && shell=/bin/bash
	scan "$root/etc/group"
	gid=$found
	if [ -z "$gid" ]; then
		pick "$uid"
		gid=$free
		echo "${broken}user:x:$gid:" >>"$root/etc/group" || return
	fi
	echo "${line}user:x:$uid:$gid::/home/user:$shell" >>"$root/etc/passwd" || return
	if [ -w "$root/etc/shadow" ]; then
		scan "$root/etc/shadow"
		[ -n "$found" ] || echo "${broken}user:*:19700:0:99999:7:::" >>"$root/etc/shadow"
	fi
	if [ ! -d "$root/home/user" ]; then
		mkdir -p "$root/home/user"
		[ -d "$root/etc/skel" ] && cp -R "$root/etc/skel/." "$root/home/user/"
	fi
	chown -R "$uid:$gid" "$root/home/user"
}

# sudo without a password, where there is sudo.
allow_sudo() {
	[ -d "$root/etc/sudoers.d" ] && [ ! -e "$root/etc/sudoers.d/agentbox-user" ] || return 0
	umask 0337
	echo 'user ALL=(ALL:ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/agentbox-user"
	umask 022
}

# Login shells read /etc/profile.d; an image without /etc/profile gets one that does.
make_profile() {
	[ -d "$root/etc/profile.d" ] || mkdir -p "$root/etc/profile.d" || return
	# shellcheck disable=SC2016 # a login shell expands it
	[ -e "$root/etc/profile" ] ||
		echo 'for i in /etc/profile.d/*.sh; do [ -r "$i" ] && . "$i"; done; unset i' >"$root/etc/profile"
}

if [ -d "$root/etc" ] || mkdir -p "$root/etc"; then
	make_account
	allow_sudo
	make_profile
fi 2>/dev/null

set -- -isnotfc -no-cgroups -image-env "$profile"
[ "${AGENTBOX_AWAIT_INIT:-}" = false ] || set -- "$@" -await-init
[ "${AGENTBOX_ENVD_VERBOSE:-}" = true ] && set -- "$@" -verbose
# Unquoted on purpose: a list of words.
# shellcheck disable=SC2086
exec "$AGENTBOX_DIR/envd" "$@" ${AGENTBOX_ENVD_FLAGS:-}
