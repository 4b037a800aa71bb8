/*
 * agentbox-podd - the program that holds the rights: see platform/engine/podd/.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "engine/podd/podd.h"

enum {
	OPT_STATE = 1,
	OPT_SOCKET,
	OPT_ACCOUNT,
	OPT_RUNTIME,
	OPT_IMAGES,
	OPT_ALIASES,
	OPT_SECCOMP,
	OPT_CRUN,
	OPT_CLASS,
	OPT_NO_NETWORK,
	OPT_NO_PRIVILEGED,
	OPT_READY_FD,
	OPT_PURGE,
	OPT_DEBUG,
	OPT_HELP
};

static const struct option long_options[] = {
	{ "state-dir", required_argument, NULL, OPT_STATE },
	{ "socket", required_argument, NULL, OPT_SOCKET },
	{ "account", required_argument, NULL, OPT_ACCOUNT },
	{ "runtime-dir", required_argument, NULL, OPT_RUNTIME },
	{ "image-dir", required_argument, NULL, OPT_IMAGES },
	{ "alias-file", required_argument, NULL, OPT_ALIASES },
	{ "seccomp-profile", required_argument, NULL, OPT_SECCOMP },
	{ "crun", required_argument, NULL, OPT_CRUN },
	{ "runtime-class", required_argument, NULL, OPT_CLASS },
	{ "no-network", no_argument, NULL, OPT_NO_NETWORK },
	{ "no-privileged", no_argument, NULL, OPT_NO_PRIVILEGED },
	{ "ready-fd", required_argument, NULL, OPT_READY_FD },
	{ "purge", no_argument, NULL, OPT_PURGE },
	{ "debug", no_argument, NULL, OPT_DEBUG },
	{ "help", no_argument, NULL, OPT_HELP },
	{ 0 },
};

static const char help[] =
	"Usage: agentbox-podd --state-dir DIR --socket PATH --account UID[:GID] "
	"[OPTION]...\n"
	"Runs the Pods of one agentbox instance. Needs root; agentboxd starts it.\n"
	"\n"
	"  --state-dir DIR           keep everything below DIR/podd\n"
	"  --socket PATH             take requests here\n"
	"  --account UID[:GID]       who may send them, beside root\n"
	"  --runtime-dir DIR         agentbox-envd, tini, agentbox-entrypoint.sh "
	"(default: " ABX_LIBEXECDIR ")\n"
	"  --image-dir DIR           where oci: and oci-archive: images may lie; may be "
	"given again\n"
	"                            (default: the state folder's images/)\n"
	"  --alias-file FILE         JSON: image reference -> the image to use here\n"
	"  --seccomp-profile FILE    (default: /usr/share/containers/seccomp.json)\n"
	"  --crun FILE               (default: /usr/bin/crun)\n"
	"  --runtime-class NAME=FILE a class runtimeClassName may name, and its "
	"crun-like program\n"
	"  --no-network              Pods have their loopback only\n"
	"  --no-privileged           refuse privileged Pods, whoever asks: what runs in "
	"one "
	"is root on this\n"
	"                            machine\n"
	"  --ready-fd N              write \"ready\" to this descriptor once requests "
	"are "
	"taken\n"
	"  --purge                   end every Pod of this state folder, leave nothing, "
	"exit\n"
	"  --debug                   log more\n";

static int parse_account(const char *arg, struct podd_options *o)
{
	char text[64];
	char *colon;
	uint64_t uid, gid;

	if (abx__str_copy(text, sizeof(text), arg) < 0)
		return ABX_EINVAL;
	colon = strchr(text, ':');
	if (colon)
		*colon++ = '\0';
	if (abx__parse_u64(text, 0, UINT32_MAX - 1, &uid) < 0)
		return ABX_EINVAL;
	gid = uid;
	if (colon && abx__parse_u64(colon, 0, UINT32_MAX - 1, &gid) < 0)
		return ABX_EINVAL;
	o->uid = (uid_t)uid;
	o->gid = (gid_t)gid;
	return ABX_OK;
}

static int parse_class(char *arg, struct podd_options *o)
{
	char *eq = strchr(arg, '=');

	if (!eq || eq == arg || eq[1] != '/' || o->class_count == ABX__PODD_CLASS_MAX)
		return ABX_EINVAL;
	*eq = '\0';
	o->classes[o->class_count].name = arg;
	o->classes[o->class_count++].crun = eq + 1;
	return ABX_OK;
}

static int parse_fd(const char *arg, struct podd_options *o)
{
	uint64_t fd;

	/* No container is to hold it. */
	if (abx__parse_u64(arg, 3, 1023, &fd) < 0 ||
	    fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0)
		return ABX_EINVAL;
	o->ready_fd = (int)fd;
	return ABX_OK;
}

static int take(int opt, char *arg, struct podd_options *o, bool *account)
{
	switch (opt) {
	case OPT_STATE:
		o->state_dir = arg;
		return ABX_OK;
	case OPT_SOCKET:
		o->socket_path = arg;
		return ABX_OK;
	case OPT_ACCOUNT:
		*account = true;
		return parse_account(arg, o);
	case OPT_RUNTIME:
		o->runtime_dir = arg;
		return ABX_OK;
	case OPT_IMAGES:
		if (o->image_dir_count == ABX__PODD_IMAGE_DIR_MAX || arg[0] != '/')
			return ABX_EINVAL;
		o->image_dirs[o->image_dir_count++] = arg;
		return ABX_OK;
	case OPT_ALIASES:
		o->alias_file = arg;
		return ABX_OK;
	case OPT_SECCOMP:
		o->seccomp_profile = arg;
		return ABX_OK;
	case OPT_CRUN:
		o->crun = arg;
		return ABX_OK;
	case OPT_CLASS:
		return parse_class(arg, o);
	case OPT_NO_NETWORK:
		o->no_network = true;
		return ABX_OK;
	case OPT_NO_PRIVILEGED:
		o->no_privileged = true;
		return ABX_OK;
	case OPT_READY_FD:
		return parse_fd(arg, o);
	default:
		return ABX_EINVAL;
	}
}

int main(int argc, char **argv)
{
	struct podd_options o = { .runtime_dir = ABX_LIBEXECDIR,
				  .seccomp_profile = "/usr/share/containers/seccomp.json",
				  .crun = "/usr/bin/crun",
				  .ready_fd = -1 };
	abx__log log = { .write = abx__log_json_line,
			 .userdata = (void *)2,
			 .level = ABX__LOG_INFO };
	static char images[PATH_MAX];
	bool account = false, purge = false;
	int opt;

	while ((opt = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (opt == OPT_HELP) {
			fputs(help, stdout);
			return 0;
		}
		if (opt == OPT_PURGE)
			purge = true;
		else if (opt == OPT_DEBUG)
			log.level = ABX__LOG_DEBUG;
		else if (take(opt, optarg, &o, &account) < 0) {
			fprintf(stderr,
				"agentbox-podd: bad option or value%s%s; see --help\n",
				optarg ? ": " : "", optarg ? optarg : "");
			return 64;
		}
	}
	if (optind != argc || !o.state_dir || (!purge && (!o.socket_path || !account))) {
		fputs("agentbox-podd: needs --state-dir, --socket and --account; see "
		      "--help\n",
		      stderr);
		return 64;
	}
	if (geteuid() != 0) {
		fputs("agentbox-podd: needs root\n", stderr);
		return 77;
	}
	if (o.image_dir_count == 0) {
		snprintf(images, sizeof(images), "%s/images", o.state_dir);
		o.image_dirs[o.image_dir_count++] = images;
	}
	if (!o.alias_file && access(ABX_DATADIR "/image-aliases.json", R_OK) == 0)
		o.alias_file = ABX_DATADIR "/image-aliases.json";
	if (purge)
		return abx__podd_purge(&o, &log) == ABX_OK ? 0 : 1;
	return abx__podd_run(&o, &log) == ABX_OK ? 0 : 1;
}
