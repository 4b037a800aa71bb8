/*
 * test-file-signature.c - signatures of file URLs, against vectors made with Python's
 * hashlib.
 */
#include <criterion/criterion.h>
#include <stdint.h>

#include "base/file-signature.h"

#define NEVER INT64_MIN

Test(base_file_signature, matches_the_sdks_vectors)
{
	static const struct {
		const char *path, *operation, *user, *token;
		int64_t expires_s;
		const char *want;
	} rows[] = {
		{ "/home/user/a.txt", "read", "", "tok", NEVER,
		  "v1_Zkbb3914oLJLvMBzCAHQhm2ydBLxbSx2eQUR/kLdvIY" },
		{ "/home/user/a.txt", "write", "", "tok", NEVER,
		  "v1_f04GAQy9t5LwqFJFzjWjjq5PMpXTu5C9c5tvdT+qpk4" },
		{ "a b/ü%41", "read", "user", "0123456789abcdef", NEVER,
		  "v1_xJAag9G2Z2vUoIKXO/J+tdGCrdSXhPl8JNuZrpcw/+o" },
		{ "", "read", "root", "t", NEVER,
		  "v1_sHpWMJ6S2EV/IH3jkCeUQBgoEyD4RND7pKkl7dd8/pY" },
		{ "/x", "read", "user", "t", 1700000000,
		  "v1_nIXU6Cvn+t/Xid4xWMfYxq+sF6MjfxIVylIsA4R1SME" },
		{ "/x", "read", "user", "t", 0,
		  "v1_HjlG1XBn/HzRm+zcCvtM09Nw+bxctDEbCBZmygMMY2A" },
		{ "/x", "read", "user", "t", -5,
		  "v1_o0s+m7ohX2XZHFCojUj+6lQ4ZZYb/t77DU0cBEyNKLQ" },
		{ "/x", "write", "user", "t", INT64_MAX,
		  "v1_1SxKGXU96sOZ8nAY2s+XpHoFZrbANF5mFw+pa1lBfWI" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		abx__secret *token =
			abx__secret_new(rows[i].token, strlen(rows[i].token));
		char got[ABX__FILE_SIGNATURE_SIZE];
		bool never = rows[i].expires_s == NEVER;

		cr_assert_eq(abx__file_signature(rows[i].path, rows[i].operation,
						 rows[i].user, token,
						 never ? NULL : &rows[i].expires_s, got),
			     0);
		cr_assert_str_eq(got, rows[i].want, "row %zu", i);
		abx__secret_free(token);
	}
}
