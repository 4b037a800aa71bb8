#!/bin/sh
# The first program of a sandbox's main container: becomes envd, which makes what the image lacks.
#
# POSIX sh without any other program: a Pod's start waits for this, and an image may have none.
#
#   AGENTBOX_DIR             where envd lies (/mnt/agentbox)
#   AGENTBOX_IS_IDLE_IMAGE   "true", or the file /etc/agentbox_is_idle_image: a warm Pod's placeholder, which is swapped
#                            before anybody uses it; sleeps instead of starting envd
#   AGENTBOX_AWAIT_INIT      "false": answer calls before the first /init
#   AGENTBOX_ENVD_VERBOSE    "true": log every request
#   AGENTBOX_CODE_INTERPRETER  "off": port 49999 is left alone; "warm": the code interpreter and its first kernel are
#                            started with the Pod; else it starts when somebody connects (images with ipykernel)
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

set -- -isnotfc -no-cgroups -prepare-image "${root:-/}" -image-env "$profile"
[ "${AGENTBOX_AWAIT_INIT:-}" = false ] || set -- "$@" -await-init
[ "${AGENTBOX_ENVD_VERBOSE:-}" = true ] && set -- "$@" -verbose
case ${AGENTBOX_CODE_INTERPRETER:-} in
off) ;;
warm) set -- "$@" -interpreter "$AGENTBOX_DIR/agentbox-interpreter.pyz" -interpreter-warm ;;
*) set -- "$@" -interpreter "$AGENTBOX_DIR/agentbox-interpreter.pyz" ;;
esac
# Unquoted on purpose: a list of words.
# shellcheck disable=SC2086
exec "$AGENTBOX_DIR/envd" "$@" ${AGENTBOX_ENVD_FLAGS:-}
