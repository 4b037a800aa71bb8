/*
 * users.c - passwd(5) and group(5), looked up line by line in the text of the file.
 */
#include "envd/users.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"

#define MAX_FILE_BYTES ((size_t)8 << 20)
#define MAX_GROUPS 65536
#define FIELD_COUNT 7

struct line {
	const char *field[FIELD_COUNT];
	size_t len[FIELD_COUNT];
	unsigned count;
};

void abx__users_init(abx__users *users, const char *passwd, const char *group)
{
	memset(users, 0, sizeof(*users));
	users->passwd.path = passwd ? passwd : "/etc/passwd";
	users->group.path = group ? group : "/etc/group";
}

void abx__users_done(abx__users *users)
{
	abx__buf_done(&users->passwd.text);
	abx__buf_done(&users->group.text);
}

/* A file that cannot be read counts as empty. */
static void refresh(abx__users_file *file)
{
	ABX_CLEANUP(abx__closep) int fd = -1;
	struct stat st;
	ssize_t n;

	if (file->is_held)
		return;
	if (stat(file->path, &st) == 0 && file->stamp[0] == (int64_t)st.st_dev &&
	    file->stamp[1] == (int64_t)st.st_ino &&
	    file->stamp[2] == (int64_t)st.st_size &&
	    file->stamp[3] ==
		    (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec)
		return;
	abx__buf_done(&file->text);
	file->has_last = false;
	memset(file->stamp, 0, sizeof(file->stamp));
	file->text.cap = MAX_FILE_BYTES;
	/* Not blocking: a sandbox's root may put a FIFO there. */
	fd = open(file->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	do {
		if (abx__buf_reserve(&file->text, 4096) < 0)
			break;
		n = read(fd, file->text.data + file->text.len, 4096);
		if (n > 0)
			file->text.len += (size_t)n;
	} while (n > 0);
	if (file->text.data)
		file->text.data[file->text.len] = '\0';
	file->stamp[0] = (int64_t)st.st_dev;
	file->stamp[1] = (int64_t)st.st_ino;
	file->stamp[2] = (int64_t)st.st_size;
	file->stamp[3] = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
}

void abx__users_hold(abx__users *users)
{
	refresh(&users->passwd);
	refresh(&users->group);
	users->passwd.is_held = users->group.is_held = true;
}

void abx__users_release(abx__users *users)
{
	users->passwd.is_held = users->group.is_held = false;
}

/* The next line, split at its colons; false at the end. */
static bool next_line(const char **pos, const char *end, struct line *ret)
{
	const char *p = *pos, *stop;

	if (p >= end)
		return false;
	stop = memchr(p, '\n', (size_t)(end - p));
	stop = stop ? stop : end;
	*pos = stop < end ? stop + 1 : end;
	ret->count = 0;
	while (ret->count < FIELD_COUNT) {
		const char *colon = memchr(p, ':', (size_t)(stop - p));
		const char *field_end =
			colon && ret->count + 1 < FIELD_COUNT ? colon : stop;

		ret->field[ret->count] = p;
		ret->len[ret->count++] = (size_t)(field_end - p);
		if (field_end == stop)
			break;
		p = field_end + 1;
	}
	return true;
}

static bool field_is(const struct line *line, unsigned index, const char *text)
{
	return index < line->count && line->len[index] == strlen(text) &&
	       memcmp(line->field[index], text, line->len[index]) == 0;
}

static int field_id(const struct line *line, unsigned index, uint32_t *ret)
{
	char digits[16];
	uint64_t value;

	if (index >= line->count || line->len[index] >= sizeof(digits))
		return ABX_EINVAL;
	memcpy(digits, line->field[index], line->len[index]);
	digits[line->len[index]] = '\0';
	if (abx__parse_u64(digits, 0, UINT32_MAX, &value) < 0)
		return ABX_EINVAL;
	*ret = (uint32_t)value;
	return ABX_OK;
}

static int fill_user(abx__user *user, const char *name, size_t name_len, const char *home,
		     size_t home_len, abx_error **reterr)
{
	user->name = abx__strndup(name, name_len);
	user->home = home_len ? abx__strndup(home, home_len) : abx__strdup("/");
	if (user->name && user->home)
		return ABX_OK;
	abx__user_done(user);
	return abx__error_nomem(reterr);
}

int abx__users_find(abx__users *users, const char *name, abx__user *ret,
		    abx_error **reterr)
{
	const char *pos, *end;
	struct line line;

	refresh(&users->passwd);
	pos = abx__buf_str(&users->passwd.text);
	end = pos + users->passwd.text.len;
	while (*name && next_line(&pos, end, &line)) {
		abx__user user = { 0 };

		if (!field_is(&line, 0, name) || line.count < 6 ||
		    field_id(&line, 2, &user.uid) < 0 ||
		    field_id(&line, 3, &user.gid) < 0)
			continue;
		if (fill_user(&user, name, strlen(name), line.field[5], line.len[5],
			      reterr) < 0)
			return ABX_ENOMEM;
		*ret = user;
		return ABX_OK;
	}
	if (strcmp(name, "root") == 0) {
		ret->uid = 0;
		ret->gid = 0;
		return fill_user(ret, name, 4, "/root", 5, reterr);
	}
	return abx__error_set(reterr, ABX_ENOTFOUND, "unknown user %s", name);
}

static bool lists_member(const struct line *line, const char *name)
{
	const char *p = line->field[3], *end = p + line->len[3];
	size_t len = strlen(name);

	while (p < end) {
		const char *comma = memchr(p, ',', (size_t)(end - p));
		const char *stop = comma ? comma : end;

		if ((size_t)(stop - p) == len && memcmp(p, name, len) == 0)
			return true;
		p = stop + 1;
	}
	return false;
}

int abx__users_groups(abx__users *users, const abx__user *user, gid_t **ret,
		      size_t *ret_count)
{
	ABX_CLEANUP(abx__freep) gid_t *groups = abx__malloc(sizeof(*groups));
	const char *pos, *end;
	struct line line;
	size_t count = 0;

	if (!groups)
		return ABX_ENOMEM;
	groups[count++] = user->gid;
	refresh(&users->group);
	pos = abx__buf_str(&users->group.text);
	end = pos + users->group.text.len;
	while (count < MAX_GROUPS && next_line(&pos, end, &line)) {
		gid_t gid, *more;

		if (line.count < 4 || !lists_member(&line, user->name) ||
		    field_id(&line, 2, &gid) < 0 || gid == user->gid)
			continue;
		more = abx__reallocarray(groups, count + 1, sizeof(*groups));
		if (!more)
			return ABX_ENOMEM;
		groups = more;
		groups[count++] = gid;
	}
	*ret = abx_take(groups);
	*ret_count = count;
	return ABX_OK;
}

static char *name_of(abx__users_file *file, uint32_t id)
{
	const char *pos, *end;
	struct line line;
	uint32_t found;

	refresh(file);
	if (file->has_last && file->last_id == id)
		return abx__strndup(file->text.data + file->last_at, file->last_len);
	pos = abx__buf_str(&file->text);
	end = pos + file->text.len;
	while (next_line(&pos, end, &line)) {
		if (line.len[0] == 0 || field_id(&line, 2, &found) < 0 || found != id)
			continue;
		file->has_last = true;
		file->last_id = id;
		file->last_at = (size_t)(line.field[0] - file->text.data);
		file->last_len = line.len[0];
		return abx__strndup(line.field[0], line.len[0]);
	}
	return id == 0 ? abx__strdup("root") : abx__strf("%u", id);
}

char *abx__users_name_of_uid(abx__users *users, uid_t uid)
{
	return name_of(&users->passwd, uid);
}

char *abx__users_name_of_gid(abx__users *users, gid_t gid)
{
	return name_of(&users->group, gid);
}

void abx__user_done(abx__user *user)
{
	abx__free(user->name);
	abx__free(user->home);
	user->name = user->home = NULL;
}

int abx__user_copy(abx__user *dst, const abx__user *src)
{
	abx__user copy = { .uid = src->uid, .gid = src->gid };
	int r = fill_user(&copy, src->name, strlen(src->name), src->home,
			  strlen(src->home), NULL);

	if (r < 0)
		return r;
	abx__user_done(dst);
	*dst = copy;
	return ABX_OK;
}
