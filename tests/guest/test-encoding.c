/*
 * test-encoding.c - content codings in headers.
 */
#include <criterion/criterion.h>

#include "envd/encoding.h"

#define NONE ABX__ENCODING_NONE
#define IDENTITY ABX__ENCODING_IDENTITY
#define GZIP ABX__ENCODING_GZIP

Test(guest_encoding, the_first_in_rank_is_sent)
{
	static const struct {
		const char *accept;
		enum abx__encoding want;
		bool takes_identity;
	} rows[] = {
		{ NULL, IDENTITY, true },
		{ "", IDENTITY, true },
		{ "gzip", GZIP, true },
		{ "GZip", GZIP, true },
		{ " gzip ;q=1", GZIP, true },
		{ "gzip, deflate", IDENTITY, true },
		{ "gzip, deflate, br", IDENTITY, true },
		{ "gzip, deflate;q=0", GZIP, true },
		{ "br, gzip", IDENTITY, true },
		{ "br, gzip, identity;q=0", GZIP, false },
		{ "deflate", IDENTITY, true },
		{ "identity, gzip", IDENTITY, true },
		{ "gzip, identity", GZIP, true },
		{ "gzip;q=0.5, identity", IDENTITY, true },
		{ "gzip;q=0.5, identity;q=0.4", GZIP, true },
		{ "gzip;q=0.0001, br;q=0", GZIP, true },
		{ "gzip;q=0", IDENTITY, true },
		{ "gzip;q=0.000", IDENTITY, true },
		{ "gzip;q=x", GZIP, true },
		{ "gzip;a=b;Q=0", IDENTITY, true },
		{ "*", IDENTITY, true },
		{ "*;q=0.5, gzip;q=0.4", IDENTITY, true },
		{ "identity;q=0", NONE, false },
		{ "identity;q=0, *", GZIP, false },
		{ "identity;q=0, gzip", GZIP, false },
		{ "identity;q=0, gzip;q=0", NONE, false },
		{ "identity;q=0, identity", NONE, false },
		{ "*;q=0", NONE, false },
		{ "*;q=0, gzip", GZIP, false },
		{ "*;q=0, identity;q=0.1", IDENTITY, true },
		{ "br;q=1, *;q=0", NONE, false },
		{ ",,gzip,", GZIP, true },
		{ "gzip;", GZIP, true },
		{ ";q=0", IDENTITY, true },
		{ "gzipped", IDENTITY, true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_assert_eq(abx__encoding_to_send(rows[i].accept), rows[i].want, "%s",
			     rows[i].accept);
		cr_assert_eq(abx__encoding_takes_identity(rows[i].accept),
			     rows[i].takes_identity, "%s", rows[i].accept);
	}
}

Test(guest_encoding, bodies_are_gzip_or_plain)
{
	static const struct {
		const char *header;
		enum abx__encoding want;
	} rows[] = {
		{ NULL, IDENTITY }, { "", IDENTITY },     { "identity", IDENTITY },
		{ "gzip", GZIP },   { "GZIP", GZIP },     { " gzip;x", GZIP },
		{ "br", NONE },     { "gzip, br", NONE }, { "gzip,gzip", NONE },
		{ "x-gzip", NONE }, { "deflate", NONE },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_assert_eq(abx__encoding_of_body(rows[i].header), rows[i].want, "%s",
			     rows[i].header);
}
