/*
 * image-record.c - one unpacked image: layers and what its config says, in memory and as
 * a file.
 */
#include "engine/podd/image.h"

#include "base/alloc.h"

static void strv_free(char **v)
{
	abx__spec_strv_free(v);
}

struct image *abx__image_ref(struct image *image)
{
	image->refs++;
	return image;
}

void abx__image_unref(struct image *image)
{
	if (!image || --image->refs > 0)
		return;
	abx__free(image->reference);
	abx__free(image->user);
	abx__free(image->working_dir);
	strv_free(image->layers);
	strv_free(image->entrypoint);
	strv_free(image->cmd);
	strv_free(image->env);
	abx__free(image);
}

static char **get_strv(json_object *o, const char *key)
{
	json_object *a;
	size_t n;
	char **v;

	if (!json_object_object_get_ex(o, key, &a) ||
	    !json_object_is_type(a, json_type_array))
		return NULL;
	n = json_object_array_length(a);
	v = abx__calloc(n + 1, sizeof(*v));
	for (size_t i = 0; v && i < n; i++) {
		const char *s = json_object_get_string(json_object_array_get_idx(a, i));

		v[i] = abx__strdup(s ? s : "");
		if (!v[i]) {
			strv_free(v);
			return NULL;
		}
	}
	return v;
}

static char *get_str(json_object *o, const char *key)
{
	json_object *s;

	return json_object_object_get_ex(o, key, &s) &&
			       json_object_is_type(s, json_type_string)
		       ? abx__strdup(json_object_get_string(s))
		       : NULL;
}

static bool get_flag(json_object *o, const char *key)
{
	json_object *b;

	return json_object_object_get_ex(o, key, &b) && json_object_get_boolean(b);
}

struct image *abx__image_from_json(struct podd *podd, const char *reference,
				   json_object *o)
{
	struct image *image = abx__calloc(1, sizeof(*image));

	if (!image)
		return NULL;
	image->refs = 1;
	image->reference = abx__strdup(reference);
	image->host_usr = get_flag(o, "host_usr");
	image->is_idle = get_flag(o, "is_idle");
	image->layers = get_strv(o, "layers");
	image->entrypoint = get_strv(o, "entrypoint");
	image->cmd = get_strv(o, "cmd");
	image->env = get_strv(o, "env");
	image->user = get_str(o, "user");
	image->working_dir = get_str(o, "working_dir");
	for (size_t i = 0; image->layers && image->layers[i]; i++)
		if (!abx__image_has_layer(podd, image->layers[i]))
			strv_free(abx_take(image->layers));
	if (!image->reference || !image->layers || !image->layers[0]) {
		abx__image_unref(image);
		return NULL;
	}
	return image;
}

static void add_strv(json_object *o, const char *key, char **v)
{
	json_object *a = v ? json_object_new_array() : NULL;

	for (size_t i = 0; a && v[i]; i++)
		json_object_array_add(a, json_object_new_string(v[i]));
	if (a)
		json_object_object_add(o, key, a);
}

json_object *abx__image_to_json(const struct image *image)
{
	json_object *o = json_object_new_object();

	if (!o)
		return NULL;
	json_object_object_add(o, "host_usr", json_object_new_boolean(image->host_usr));
	json_object_object_add(o, "is_idle", json_object_new_boolean(image->is_idle));
	add_strv(o, "layers", image->layers);
	add_strv(o, "entrypoint", image->entrypoint);
	add_strv(o, "cmd", image->cmd);
	add_strv(o, "env", image->env);
	if (image->user)
		json_object_object_add(o, "user", json_object_new_string(image->user));
	if (image->working_dir)
		json_object_object_add(o, "working_dir",
				       json_object_new_string(image->working_dir));
	return o;
}
