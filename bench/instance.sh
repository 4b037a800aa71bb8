# shellcheck shell=bash
# What bench/run and bench/soak share: an instance of their own in a temporary state directory, with the benchmarks' envs.
# Sourced, from the top of the tree, after build-aux/common.sh.
# shellcheck disable=SC2034 # the names are the callers'
: "${top:?}"
build=${AGENTBOX_BENCH_BUILD:-$top/build/quickstart}
prefix=$build/root
work=$(mktemp -d /var/tmp/agentbox-bench.XXXXXX)
chmod 755 "$work" # agentboxd has an account of its own
state=$work/state
port=$(free_port)

bench_stop() {
	instance_stop || warn "the instance in $state could not be stopped"
	rm -rf --one-file-system "$work"
}

# bench_start PROGRAM: builds and installs into build/quickstart as ./quickstart does, and the program; starts the
# instance. Then: $cgroup, its folder; $podd and $agentboxd, the two daemons that carry data and Pods, not what they
# fork for a moment.
bench_start() {
	trap bench_stop EXIT
	say "building"
	build_tree "$build" --prefix="$prefix" || die "the build failed" "The whole output is in $build.log."
	make -C "$build" -s install "$1" >"$build.log" 2>&1 || die "make install failed" "See $build.log."
	touch "$work/start"
	say "starting an instance in $state"
	instance_start --engine local || die "agentboxd did not start" "$(tail -5 "$state/agentboxd.log")"
	mkdir -p "$state/images"
	deploy/images/build-busybox "$state/images/busybox" >"$work/images.log" 2>&1 ||
		die "the busybox image cannot be built" "$(tail -5 "$work/images.log")"
	eval "$(instance_env)"
	"$prefix/bin/abx" create templates -f bench/templates.yaml >/dev/null
	for env in bench/env-*.yaml; do "$prefix/bin/abx" create envs -f "$env" >/dev/null; done
	cgroup=$(find /sys/fs/cgroup -maxdepth 2 -type d -name "agentbox-*" -newer "$work/start" | head -1)
	[ -n "$cgroup" ] || die "no cgroup of this instance below /sys/fs/cgroup"
	podd=$(pgrep -o -f -- "agentbox-podd --state-dir $state")
	agentboxd=$(pgrep -n -f -- "agentboxd --state-dir $state")
}
