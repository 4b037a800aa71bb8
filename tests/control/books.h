/*
 * books.h - the books of a random history: a world, what was asked of it and not answered
 * yet, and the sandboxes somebody was told of. And what must hold of them at any time.
 *
 * A crash may fall between the write of "running" and its answer: such a sandbox exists
 * although nobody was told. No protocol avoids that; they are counted against the calls
 * that were in flight.
 */
#ifndef TESTS_CONTROL_BOOKS_H
#define TESTS_CONTROL_BOOKS_H

#include "world.h"

#define BOOKS_CALLS 64
#define BOOKS_TOLD 64

typedef struct booked {
	bool used, is_kill;
	answer a;
} booked;

typedef struct books {
	world w;
	unsigned seed, first_seed;
	booked calls[BOOKS_CALLS];
	char told[BOOKS_TOLD][32];
	int told_count;
	/* Whether what this call was about may come back with a crash; and how many did
	 * end so. */
	bool (*in_limbo)(const booked *call);
	int limbo;
} books;

void books_begin(books *b, unsigned seed, bool (*in_limbo)(const booked *call));
unsigned books_random(books *b, unsigned below);
/* NULL: as many as may be are open. */
booked *books_call(books *b);
/* One of those somebody was told of, which is taken out of the books. */
void books_take(books *b, char id[32]);
/* Enters what was answered since the last look. */
void books_read(books *b);
/* After books_read(): how many calls are open; nobody waits for them any more. */
int books_forget_calls(books *b);
/* Those in the table nobody was told of become known; at most `allowed`. */
void books_count_untold(books *b, int allowed);
/* No sandbox on two Pods, none that was acknowledged is lost or on another's. */
void books_check_owners(books *b);

#endif
