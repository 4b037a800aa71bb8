/*
 * identity.h - who asks: what a key, a console session or the instance's own socket says
 * about the caller. Pure.
 */
#ifndef ABX_SERVE_IDENTITY_H
#define ABX_SERVE_IDENTITY_H

#include <stdbool.h>

#include <agentbox/error.h>

typedef struct abx__identity {
	bool admin;   /* the role */
	bool agent;   /* a key whose writes a person releases (approvals.h) */
	bool session; /* a person: may decide approvals */
	bool acts_as; /* an admin as somebody else, whose view it has */
	const char *team, *user, *namespace_;
	const char *key_name; /* "" when no key was needed */
	const char *email;    /* of a session; "" when unknown */
} abx__identity;

/* The owner of the instance, over its Unix socket. */
extern const abx__identity abx__identity_local;

/* Sees everybody's objects. */
bool abx__identity_sees_all(const abx__identity *who);
/* The same team and user. */
bool abx__identity_is(const abx__identity *who, const char *team, const char *user);
/* What to call it in a record: the e-mail of a session, else TEAM/USER. A new string. */
char *abx__identity_signature(const abx__identity *who);

/* A copy that owns its strings; ABX_ENOMEM, and `dst` is to be done all the same. */
int abx__identity_copy(abx__identity *dst, const abx__identity *src);
/* Only of a copy, or of zeroes. */
void abx__identity_done(abx__identity *who);
/* Replaces a string of a copy. */
int abx__identity_set(const char **field, const char *value);

#endif
