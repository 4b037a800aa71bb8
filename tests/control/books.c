/* books.c - see books.h. */
#include "books.h"

#include <criterion/criterion.h>
#include <string.h>

#include "model/keys.h"

void books_begin(books *b, unsigned seed, bool (*in_limbo)(const booked *call))
{
	memset(b, 0, sizeof(*b));
	b->seed = b->first_seed = seed;
	b->in_limbo = in_limbo;
	world_init(&b->w);
}

unsigned books_random(books *b, unsigned below)
{
	b->seed = b->seed * 1103515245u + 12345u;
	return (b->seed >> 16) % below;
}

booked *books_call(books *b)
{
	for (int i = 0; i < BOOKS_CALLS; i++) {
		if (b->calls[i].used)
			continue;
		b->calls[i] = (booked){ .used = true };
		return &b->calls[i];
	}
	return NULL;
}

/* ---- sandboxes somebody was told of ---- */

static int find(const books *b, const char *id)
{
	for (int i = 0; i < b->told_count; i++)
		if (strcmp(b->told[i], id) == 0)
			return i;
	return -1;
}

static void add(books *b, const char *id)
{
	cr_assert_lt(b->told_count, BOOKS_TOLD);
	cr_assert_eq(find(b, id), -1, "sandbox %s was given to two (seed %u)", id,
		     b->first_seed);
	cr_assert_lt(strlen(id), sizeof(b->told[0]));
	memcpy(b->told[b->told_count++], id, strlen(id) + 1);
}

void books_take(books *b, char id[32])
{
	int i = (int)books_random(b, (unsigned)b->told_count);

	memcpy(id, b->told[i], sizeof(b->told[i]));
	memmove(b->told[i], b->told[--b->told_count], sizeof(b->told[i]));
}

/* ---- answers ---- */

void books_read(books *b)
{
	for (int i = 0; i < BOOKS_CALLS; i++) {
		booked *call = &b->calls[i];

		if (!call->used || !call->a.calls)
			continue;
		cr_assert_eq(call->a.calls, 1);
		if (!call->is_kill && call->a.r == ABX_OK)
			add(b, call->a.id);
		b->limbo += call->a.r < 0 && b->in_limbo(call);
		call->used = false;
	}
}

int books_forget_calls(books *b)
{
	int open = 0;

	for (int i = 0; i < BOOKS_CALLS; i++) {
		/* A claim may have become a sandbox; a kill may not have happened. */
		open += b->calls[i].used;
		b->calls[i].used = false;
	}
	return open;
}

/* ---- what must hold ---- */

void books_count_untold(books *b, int allowed)
{
	const abx__sandbox_rec *rec;

	for (size_t i = 0;
	     abx__sandboxes_at(abx__control_sandboxes(b->w.control), i, &rec); i++) {
		if (rec->state != ABX__SANDBOX_RUNNING || find(b, rec->id) >= 0)
			continue;
		cr_assert_gt(allowed--, 0, "sandbox %s is leaked (seed %u)", rec->id,
			     b->first_seed);
		add(b, rec->id);
	}
}

void books_check_owners(books *b)
{
	abx__pod one, other;

	for (size_t i = 0; abx__fake_engine_at(b->w.engine, i, &one); i++) {
		const char *id = abx__map_get(&one.labels, ABX__LABEL_SANDBOX_ID);

		for (size_t k = 0; id && k < i; k++) {
			const char *also;

			abx__fake_engine_at(b->w.engine, k, &other);
			also = abx__map_get(&other.labels, ABX__LABEL_SANDBOX_ID);
			cr_assert(!also || strcmp(id, also) != 0,
				  "sandbox %s on two Pods (seed %u)", id, b->first_seed);
		}
	}
	for (int i = 0; i < b->told_count; i++) {
		const abx__sandbox_rec *rec = abx__sandboxes_find(
			abx__control_sandboxes(b->w.control), b->told[i]);

		cr_assert(rec, "acknowledged sandbox %s is lost (seed %u)", b->told[i],
			  b->first_seed);
		cr_assert_eq(rec->state, ABX__SANDBOX_RUNNING);
		cr_assert_str_eq(pod_label(&b->w, rec->pod, ABX__LABEL_SANDBOX_ID),
				 b->told[i]);
	}
}
