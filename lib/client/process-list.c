/*
 * process-list.c - the processes of a sandbox: envd's List.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "client/answer.h"
#include "client/client.h"
#include "client/request.h"
#include "client/sandbox.h"
#include "client/strings.h"
#include "io/json.h"

struct abx_process_list {
	abx_process_info *items;
	size_t count;
	abx__strings strings;
};

void abx_process_list_free(abx_process_list *list)
{
	if (!list)
		return;
	abx__strings_done(&list->strings);
	abx__free(list->items);
	abx__free(list);
}

ABX_DEFINE_FREEP(list_freep, abx_process_list, abx_process_list_free)

size_t abx_process_list_count(abx_process_list *list)
{
	return list->count;
}

const abx_process_info *abx_process_list_at(abx_process_list *list, size_t index)
{
	return index < list->count ? &list->items[index] : NULL;
}

static int parse_one(abx__strings *strings, json_object *obj, abx_process_info *info)
{
	json_object *config = NULL;
	json_object *args = NULL;
	json_object *envs = NULL;
	int64_t pid = 0;
	int r;

	if (!json_object_is_type(obj, json_type_object))
		return ABX_EPROTO;
	abx__json_get_i64(obj, "pid", 0, UINT32_MAX, &pid, NULL);
	if (abx__json_get_object(obj, "config", &config, NULL) <= 0 || !pid)
		return ABX_EPROTO;
	abx__json_get_array(config, "args", &args, NULL);
	abx__json_get_object(config, "envs", &envs, NULL);
	info->size = sizeof(*info);
	info->pid = (uint32_t)pid;
	r = abx__strings_member(strings, obj, "tag", NULL, &info->tag);
	if (r >= 0)
		r = abx__strings_member(strings, config, "cmd", "", &info->cmd);
	if (r >= 0)
		r = abx__strings_member(strings, config, "cwd", NULL, &info->cwd);
	if (r >= 0)
		r = abx__strings_list(strings, args, &info->args);
	if (r >= 0)
		r = abx__strings_pairs(strings, envs, &info->env_vars);
	return r;
}

static int parse_list(json_object *obj, abx_process_list **ret)
{
	ABX_CLEANUP(list_freep) abx_process_list *list = abx__calloc(1, sizeof(*list));
	json_object *array = NULL;
	size_t count;
	int r;

	if (!list)
		return ABX_ENOMEM;
	if (abx__json_get_array(obj, "processes", &array, NULL) < 0)
		return ABX_EPROTO;
	count = array ? json_object_array_length(array) : 0;
	list->items = abx__calloc(count + 1, sizeof(*list->items));
	if (!list->items)
		return ABX_ENOMEM;
	for (size_t i = 0; i < count; i++) {
		r = parse_one(&list->strings, json_object_array_get_idx(array, i),
			      &list->items[i]);
		if (r < 0)
			return r;
		list->count++;
	}
	*ret = abx_take(list);
	return ABX_OK;
}

static int list_answer(abx_op *op, int status, abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *obj = NULL;
	abx_process_list *list = NULL;
	int r;

	if (status != 200)
		return abx__answer_failed(op, status, reterr);
	r = abx__answer_object(op, &obj, reterr);
	if (r < 0)
		return r;
	r = parse_list(obj, &list);
	if (r == ABX_ENOMEM)
		return abx__error_nomem(reterr);
	if (r < 0)
		return abx__error_set(reterr, ABX_EPROTO,
				      "the answer is not a list of processes");
	op->result = list;
	return ABX_OK;
}

static int start_list(abx_sandbox *sandbox, const abx__then *then, abx_error **reterr)
{
	abx__request req = { .where = ABX__TO_SANDBOX,
			     .method = "POST",
			     .sandbox = sandbox,
			     .path = "/process.Process/List",
			     .is_rpc = true };
	abx_op *op = NULL;
	int r;

	if (!sandbox)
		return abx__error_set(reterr, ABX_EINVAL,
				      "abx_command_list: the sandbox is NULL");
	r = abx__op_new(sandbox->client, then, &op, reterr,
			"list the processes of sandbox %s", sandbox->id);
	if (r < 0)
		return r;
	op->on_answer = list_answer;
	r = abx__request_json(op, json_object_new_object(), reterr);
	return r < 0 ? abx__op_abandon(op, r, reterr)
		     : abx__request_send(op, &req, reterr);
}

int abx_command_list(abx_sandbox *sandbox, abx_process_list **ret, abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_PROCESS_LIST, &wait);
	int r;

	if (!ret)
		return abx__error_set(reterr, ABX_EINVAL,
				      "abx_command_list: ret is NULL");
	r = start_list(sandbox, &then, reterr);
	if (r < 0)
		return r;
	r = abx__wait_end(sandbox->client, &wait, r, reterr);
	if (r >= 0)
		*ret = wait.result;
	return r;
}

int abx_command_list_async(abx_sandbox *sandbox, abx_process_list_fn done, void *userdata,
			   abx_free_fn free_userdata, abx_op **ret_op, abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_PROCESS_LIST, process_list, done);

	return abx__then_end(&then, start_list(sandbox, &then, reterr));
}
