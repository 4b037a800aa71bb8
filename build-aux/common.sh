# shellcheck shell=bash
# What ./quickstart, ./check and the live tests share: packages, the build, words on the screen.
# Sourced, from the top of the tree, with $top set. Changes nothing when sourced.
: "${top:?}"

say() { printf '%s\n' "$*"; }
warn() { printf '%s\n' "$*" >&2; }
die() {
	warn "error: $1"
	shift
	for line in "$@"; do warn "$line"; done
	exit 1
}

# Runs a command with root's rights.
as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	else
		sudo -E "$@"
	fi
}

now_ms() { date +%s%3N; }

# seconds_since MS: like 3.4
seconds_since() { awk -v ms=$(($(now_ms) - $1)) 'BEGIN { printf "%.1f", ms / 1000 }'; }

# packages_missing WHEN...: names of the packages of those times that are not installed.
packages_missing() {
	local when name command wanted=" $* "
	local installed
	installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null |
		awk '$1 == "installed" { print $2 }')
	while read -r when name command; do
		case "$when" in '' | '#'*) continue ;; esac
		case "$wanted" in *" $when "*) ;; *) continue ;; esac
		[ -n "$command" ] && command -v "$command" >/dev/null && continue
		grep -qxF -- "$name" <<<"$installed" || printf '%s\n' "$name"
	done <"$top/build-aux/packages"
}

# packages_install WHEN...: installs what is missing; says what.
packages_install() {
	local missing
	missing=$(packages_missing "$@")
	if [ -z "$missing" ]; then
		say "all packages are here"
		return 0
	fi
	command -v apt-get >/dev/null ||
		die "apt-get is not here, and these packages are missing: ${missing//$'\n'/ }" \
			"Install them with this system's own package manager (names are Debian 12's)."
	if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
		die "packages are missing and neither root nor sudo is here: ${missing//$'\n'/ }" \
			"Run as root: apt-get install ${missing//$'\n'/ }"
	fi
	say "installing: ${missing//$'\n'/ }"
	as_root apt-get -q update >/dev/null || warn "apt-get update failed; trying with the lists that are here"
	# shellcheck disable=SC2086
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends $missing \
		>"${TMPDIR:-/tmp}/agentbox-apt.$$" 2>&1 || {
		tail -20 "${TMPDIR:-/tmp}/agentbox-apt.$$" >&2
		die "apt-get install failed" "The whole output is in ${TMPDIR:-/tmp}/agentbox-apt.$$."
	}
	rm -f "${TMPDIR:-/tmp}/agentbox-apt.$$"
}

# build_tree DIR OPTION...: configures DIR when it must be, then makes all. Output to DIR.log on failure.
build_tree() {
	local dir=$1 cc=gcc log
	shift
	mkdir -p "$dir"
	log=$dir.log
	command -v ccache >/dev/null && cc="ccache gcc"
	if [ ! -x "$top/configure" ] || [ "$top/configure.ac" -nt "$top/configure" ] ||
		[ ! -f "$top/Makefile.in" ]; then
		(cd "$top" && autoreconf -fi) >"$log" 2>&1 || {
			tail -20 "$log" >&2
			return 1
		}
	fi
	if [ ! -f "$dir/Makefile" ]; then
		(cd "$dir" && "$top/configure" -q --disable-static CC="$cc" PYTHON3=/usr/bin/python3 "$@") >"$log" 2>&1 || {
			tail -20 "$log" >&2
			return 1
		}
	fi
	make -C "$dir" -s -j"$(nproc)" >"$log" 2>&1 || {
		tail -40 "$log" >&2
		return 1
	}
}

# ---- an instance: agentboxd and agentbox-podd over one state directory ----
# Of the callers: $state, the state directory; $port, of its loopback listener; $prefix, where the programs were
# installed (./quickstart and ./check install into the build folder, never into the system).
: "${state=}" "${port=}" "${prefix=}"

free_port() {
	/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

port_is_free() {
	/usr/bin/python3 -c 'import socket, sys; s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("127.0.0.1", int(sys.argv[1])))' \
		"$1" 2>/dev/null
}

instance_is_up() {
	as_root test -S "$state/agentboxd.sock" &&
		as_root "$prefix/bin/abx" --socket "$state/agentboxd.sock" --json clusters >/dev/null 2>&1
}

# instance_start OPTION...: starts it and waits until it answers.
instance_start() {
	getent passwd agentbox >/dev/null ||
		as_root adduser --system --group --no-create-home --home /nonexistent --quiet agentbox
	as_root "$prefix/sbin/agentboxd" --supervise --daemon --state-dir "$state" --listen "127.0.0.1:$port" "$@" ||
		return 1
	local tries=150
	while [ $((tries--)) -gt 0 ]; do
		instance_is_up && return 0
		sleep 0.1
	done
	warn "error: agentboxd did not answer within 15 s"
	as_root tail -n 20 "$state/agentboxd.log" >&2
	return 1
}

# Ends every process, Pod, network and cgroup of the instance, and removes its state.
instance_stop() {
	as_root test -d "$state" || return 0
	as_root "$prefix/sbin/agentboxd" --stop --purge --state-dir "$state" || return 1
	as_root rm -rf --one-file-system "$state"
}

# The export lines of a client of it, for eval.
instance_env() {
	local keys base=http://127.0.0.1:$port
	keys=$(as_root cat "$state/keys.json") || return 1
	cat <<-END
		export E2B_API_KEY=$(sed -nE 's/.*"e2b": *"([^"]+)".*/\1/p' <<<"$keys")
		export E2B_API_URL=$base/agent-sandbox/api/e2b
		export E2B_SANDBOX_URL=$base
		export E2B_DOMAIN=localhost:$port
		export AGENTBOX_API_KEY=$(sed -nE 's/.*"agbx": *"([^"]+)".*/\1/p' <<<"$keys")
		export AGENTBOX_CLUSTER_API=$base
		export AGENTBOX_STATE_DIR=$state
	END
	# The socket needs no key; it is the instance's owner's and root's.
	[ ! -w "$state/agentboxd.sock" ] || say "export AGENTBOX_SOCKET=$state/agentboxd.sock"
}
