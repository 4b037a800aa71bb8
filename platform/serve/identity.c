/*
 * identity.c - who asks: copies, and what two identities have to do with each other.
 */
#include "serve/identity.h"

#include "base/alloc.h"
#include "base/str.h"

const abx__identity abx__identity_local = { .admin = true,
					    .session = true,
					    .team = "admin",
					    .user = "admin",
					    .namespace_ = "default",
					    .key_name = "",
					    .email = "" };

bool abx__identity_sees_all(const abx__identity *who)
{
	return who->admin && !who->acts_as;
}

bool abx__identity_is(const abx__identity *who, const char *team, const char *user)
{
	return abx__str_eq(who->team, team) && abx__str_eq(who->user, user);
}

char *abx__identity_signature(const abx__identity *who)
{
	return *who->email ? abx__strdup(who->email)
			   : abx__strf("%s/%s", who->team, who->user);
}

int abx__identity_copy(abx__identity *dst, const abx__identity *src)
{
	*dst = *src;
	dst->team = abx__strdup(src->team);
	dst->user = abx__strdup(src->user);
	dst->namespace_ = abx__strdup(src->namespace_);
	dst->key_name = abx__strdup(src->key_name);
	dst->email = abx__strdup(src->email ? src->email : "");
	return dst->team && dst->user && dst->namespace_ && dst->key_name && dst->email
		       ? ABX_OK
		       : ABX_ENOMEM;
}

int abx__identity_set(const char **field, const char *value)
{
	char *copy = abx__strdup(value);

	if (!copy)
		return ABX_ENOMEM;
	abx__free((char *)*field);
	*field = copy;
	return ABX_OK;
}

void abx__identity_done(abx__identity *who)
{
	abx__free((char *)who->team);
	abx__free((char *)who->user);
	abx__free((char *)who->namespace_);
	abx__free((char *)who->key_name);
	abx__free((char *)who->email);
	*who = (abx__identity){ 0 };
}
