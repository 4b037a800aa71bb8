/*
 * test-process-tree.c - lines of /proc/PID/stat.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "envd/process-tree.h"

Test(guest_process_tree, a_line_is_read_whatever_the_command_is_called)
{
	abx__process_stat stat;

	cr_assert(abx__process_stat_parse("12 (sh) S 1 12 7 34816 12 4194304", &stat));
	cr_assert(stat.pid == 12 && stat.parent == 1 && stat.session == 7);
	cr_assert_not(stat.is_dead);
	cr_assert(abx__process_stat_parse("3 (a) R 9 (b)) Z 2 3 4 0", &stat));
	cr_assert(stat.pid == 3 && stat.parent == 2 && stat.session == 4);
	cr_assert(stat.is_dead);
}

Test(guest_process_tree, what_is_no_such_line_is_refused)
{
	static const char *const lines[] = {
		"", "12", "12 (sh", "(sh) S 1 2 3", "12 (sh) S 1", "12 (sh) S one 2 3"
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		abx__process_stat stat;

		cr_assert_not(abx__process_stat_parse(lines[i], &stat), "%s", lines[i]);
	}
}
