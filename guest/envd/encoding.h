/*
 * encoding.h - content codings of file bodies: gzip or none (RFC 9110, sections 8.4 and
 * 12.5.3). Pure.
 */
#ifndef ABX_ENVD_ENCODING_H
#define ABX_ENVD_ENCODING_H

#include <stdbool.h>

enum abx__encoding {
	ABX__ENCODING_NONE, /* nothing we can do */
	ABX__ENCODING_IDENTITY,
	ABX__ENCODING_GZIP,
};

/* What a Content-Encoding says a body is; NULL and "" are identity. */
enum abx__encoding abx__encoding_of_body(const char *content_encoding);
/* What to send for an Accept-Encoding: gzip when it ranks first among gzip, identity and
   "*" (which means identity unless that is refused), in equal rank when it is named
   first. Who lists other codings as well lists what its library can undo, and has not
   asked for any: it gets identity unless that is refused. Packing takes ten times as long
   as sending does on one machine, and the E2B SDK sends such a list with every read. */
enum abx__encoding abx__encoding_to_send(const char *accept_encoding);
/* Not refused by "identity;q=0", nor by "*;q=0" alone. */
bool abx__encoding_takes_identity(const char *accept_encoding);

#endif
