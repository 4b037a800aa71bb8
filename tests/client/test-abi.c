/*
 * test-abi.c - the size of every public struct. A size that changes without a new member
 * at its end is a broken ABI; one with a new member needs its row here raised on purpose.
 */
#include <criterion/criterion.h>

#include <agentbox/agentbox.h>

static const struct {
	const char *name;
	size_t size;
	size_t expected; /* on a 64-bit machine */
} structs[] = {
#define ROW(type, expected)                   \
	{                                     \
#type, sizeof(type), expected \
	}
	ROW(abx_client_options, 144),
	ROW(abx_sandbox_options, 88),
	ROW(abx_sandbox_connect_options, 16),
	ROW(abx_sandbox_info, 104),
	ROW(abx_sandbox_pause_options, 16),
	ROW(abx_sandbox_list_options, 48),
	ROW(abx_code_result, 120),
	ROW(abx_code_options, 80),
	ROW(abx_code_execution, 96),
	ROW(abx_command_options, 96),
	ROW(abx_command_result, 56),
	ROW(abx_process_info, 56),
	ROW(abx_pty_options, 88),
	ROW(abx_watch_event, 32),
	ROW(abx_watch_options, 56),
	ROW(abx_file_options, 80),
	ROW(abx_file_url_options, 24),
	ROW(abx_file_info, 96),
	ROW(abx_metric, 72),
	ROW(abx_metrics_options, 24),
	ROW(abx_log_entry, 40),
	ROW(abx_logs_options, 40),
	ROW(abx_snapshot_info, 32),
	ROW(abx_snapshot_options, 16),
	ROW(abx_snapshot_list_options, 32),
	ROW(abx_fork_options, 16),
	ROW(abx_fork, 24),
	ROW(abx_apply_options, 32),
	ROW(abx_context_options, 48),
#undef ROW
};

TestSuite(client_abi, .timeout = 30);

Test(client_abi, public_structs_keep_their_size)
{
	if (sizeof(void *) != 8)
		cr_skip_test("the table is for 64-bit machines");
	for (size_t i = 0; i < sizeof(structs) / sizeof(structs[0]); i++)
		cr_expect(structs[i].size == structs[i].expected,
			  "%s has %zu bytes, not %zu", structs[i].name, structs[i].size,
			  structs[i].expected);
}

Test(client_abi, error_codes_keep_their_value)
{
	cr_expect(ABX_EINVAL == -1 && ABX_ENOMEM == -2 && ABX_ENOTFOUND == -3 &&
		  ABX_ETIMEDOUT == -4 && ABX_ECANCELED == -5 && ABX_EEXISTS == -6 &&
		  ABX_ECONFLICT == -7);
	cr_expect(ABX_EUNAUTHENTICATED == -8 && ABX_EDENIED == -9 &&
		  ABX_EEXHAUSTED == -10 && ABX_EUNAVAILABLE == -11 &&
		  ABX_ETOOBIG == -12 && ABX_EUNSUPPORTED == -13 && ABX_EPROTO == -14 &&
		  ABX_EIO == -15 && ABX_ESTATE == -16 && ABX_EFAIL == -17);
}
