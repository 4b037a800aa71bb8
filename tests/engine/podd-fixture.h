/*
 * podd-fixture.h - a real agentbox-podd in a temporary state folder, for tests that need
 * root. Everything it makes carries the folder's tag, so tests run beside each other and
 * beside an instance in use.
 */
#ifndef TESTS_ENGINE_PODD_FIXTURE_H
#define TESTS_ENGINE_PODD_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct podd_fixture {
	char dir[64]; /* state folder */
	char socket[96];
	char log[96];
	char tag[5];
	const char *option; /* one more, of the next podd_fixture_start() */
	pid_t pid;
	pid_t cleaner;
	int cleaner_fd;
} podd_fixture;

/* Why such tests cannot run here, or NULL. Say it with cr_skip_test(). */
const char *podd_fixture_missing(void);
void podd_fixture_open(podd_fixture *f);
void podd_fixture_start(podd_fixture *f); /* again, after podd_fixture_kill() */
void podd_fixture_kill(podd_fixture *f, int signal_);
/* Ends podd and every Pod; fails the test when anything of the instance is left. */
void podd_fixture_close(podd_fixture *f);
/* Processes, links, mounts, groups and folders of Pods; what is left, said in `what`. */
bool podd_fixture_is_clean(const podd_fixture *f, char *what, size_t size);
unsigned podd_fixture_count_fds(const podd_fixture *f);

#endif
