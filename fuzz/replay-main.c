/*
 * replay-main.c - the plain main of every fuzz target: runs each file of its corpus, and
 * each beginning of a small one, so that make check sees what the fuzzer once found. With
 * arguments it runs those files instead.
 *
 * The corpus of .../fuzz-NAME is $top_srcdir/fuzz/corpus/NAME. None there, or an empty
 * one, is a failure.
 */
#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_MAX ((size_t)16 << 20)
#define PREFIXES_MAX 2048

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A copy of its own for each run, so that a sanitizer sees one byte too far. */
static int run(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		return -1;
	if (size)
		memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
	return 0;
}

static int replay(const char *path)
{
	FILE *file = fopen(path, "rbe");
	uint8_t *data = malloc(INPUT_MAX);
	size_t size;
	int r = 0;

	if (!file || !data) {
		fprintf(stderr, "%s: cannot be read\n", path);
		if (file)
			fclose(file);
		free(data);
		return -1;
	}
	size = fread(data, 1, INPUT_MAX, file);
	fclose(file);
	r = run(data, size);
	for (size_t len = 0; r == 0 && size <= PREFIXES_MAX && len < size; len++)
		r = run(data, len);
	free(data);
	return r;
}

static const char *name_of(const char *program)
{
	const char *slash = strrchr(program, '/');
	const char *name = slash ? slash + 1 : program;

	if (strncmp(name, "lt-", 3) == 0)
		name += 3;
	return strncmp(name, "fuzz-", 5) == 0 ? name + 5 : name;
}

static int replay_folder(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	int count = 0;

	if (!dir) {
		fprintf(stderr, "%s: no corpus\n", folder);
		return -1;
	}
	while ((entry = readdir(dir))) {
		char path[PATH_MAX + 256];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (replay(path) < 0) {
			count = -1;
			break;
		}
		count++;
	}
	closedir(dir);
	return count;
}

int main(int argc, char **argv)
{
	const char *top = getenv("top_srcdir");
	char folder[PATH_MAX];
	int count = 0;

	for (int i = 1; i < argc; i++)
		if (replay(argv[i]) < 0)
			return 1;
	if (argc > 1)
		return 0;
	snprintf(folder, sizeof(folder), "%s/fuzz/corpus/%s", top ? top : ".",
		 name_of(argv[0]));
	count = replay_folder(folder);
	if (count <= 0) {
		fprintf(stderr, "%s: nothing was replayed\n", folder);
		return 1;
	}
	printf("%d inputs\n", count);
	return 0;
}
