/*
 * doc.c - the Pod document in and out of JSON, and the one way it changes.
 */
#include "engine/local/doc.h"

#include <string.h>

#include "base/alloc.h"
#include "io/json.h"

static const char *const activity_names[] = {
	[ABX__POD_RUN] = "run", [ABX__POD_FREEZE] = "freeze", [ABX__POD_STOP] = "stop"
};

const char *abx__pod_activity_name(enum abx__pod_activity activity)
{
	return activity_names[activity == ABX__POD_AS_IT_IS ? ABX__POD_RUN : activity];
}

void abx__pod_doc_done(abx__pod_doc *doc)
{
	abx__map_done(&doc->labels);
	abx__map_done(&doc->annotations);
	abx__free(abx_take(doc->image));
	json_object_put(abx_take(doc->template_json));
}

int abx__pod_doc_copy(abx__pod_doc *dst, const abx__pod_doc *src)
{
	abx__pod_doc copy = { .generation = src->generation,
			      .activity = src->activity,
			      .keep = src->keep };
	int r = abx__map_copy(&copy.labels, &src->labels);

	if (r == ABX_OK)
		r = abx__map_copy(&copy.annotations, &src->annotations);
	if (r == ABX_OK && src->image && !(copy.image = abx__strdup(src->image)))
		r = ABX_ENOMEM;
	if (r < 0) {
		abx__pod_doc_done(&copy);
		return r;
	}
	copy.template_json = json_object_get(src->template_json);
	abx__pod_doc_done(dst);
	*dst = copy;
	return ABX_OK;
}

static int change_map(abx__map *map, const abx__map *set, const char *const *remove)
{
	for (; remove && *remove; remove++)
		abx__map_remove(map, *remove);
	for (size_t i = 0; set && i < set->count; i++) {
		int r = abx__map_set(map, set->items[i].key, set->items[i].value);

		if (r < 0)
			return r;
	}
	return ABX_OK;
}

/* 1 when that makes the container anew. */
static int change_activity(abx__pod_doc *doc, enum abx__pod_activity to)
{
	bool anew = to == ABX__POD_RUN && doc->activity == ABX__POD_STOP;

	if (to == ABX__POD_AS_IT_IS)
		return 0;
	/* Nothing is left to freeze. */
	if (to != ABX__POD_FREEZE || doc->activity != ABX__POD_STOP)
		doc->activity = to;
	if (anew) {
		doc->generation++;
		doc->keep = true;
	}
	return anew;
}

int abx__pod_doc_apply(abx__pod_doc *doc, const abx__pod_change *change)
{
	bool anew = change->restart;
	int r = change_map(&doc->labels, change->set_labels, change->remove_labels);

	if (r == ABX_OK)
		r = change_map(&doc->annotations, change->set_annotations,
			       change->remove_annotations);
	if (r < 0)
		return r;
	if (change->image && strcmp(change->image, doc->image) != 0) {
		char *image = abx__strdup(change->image);

		if (!image)
			return ABX_ENOMEM;
		abx__free(doc->image);
		doc->image = image;
		anew = true;
	}
	if (!anew)
		return change_activity(doc, change->activity);
	doc->generation++;
	doc->activity = ABX__POD_RUN;
	doc->keep = false;
	return 1;
}

static json_object *print_map(const abx__map *map)
{
	json_object *o = json_object_new_object();

	for (size_t i = 0; o && i < map->count; i++)
		if (abx__json_set_str(o, map->items[i].key, map->items[i].value) < 0) {
			json_object_put(o);
			return NULL;
		}
	return o;
}

char *abx__pod_doc_print(const abx__pod_doc *doc, size_t *ret_len)
{
	json_object *o = json_object_new_object();
	char *text = NULL;

	if (o && abx__json_set_take(o, "labels", print_map(&doc->labels)) == ABX_OK &&
	    abx__json_set_take(o, "annotations", print_map(&doc->annotations)) ==
		    ABX_OK &&
	    abx__json_set_str(o, "image", doc->image) == ABX_OK &&
	    abx__json_set_i64(o, "generation", (int64_t)doc->generation) == ABX_OK &&
	    (doc->activity == ABX__POD_RUN ||
	     abx__json_set_str(o, "activity", abx__pod_activity_name(doc->activity)) ==
		     ABX_OK) &&
	    (!doc->keep || abx__json_set_bool(o, "keep", true) == ABX_OK) &&
	    abx__json_set_take(o, "template", json_object_get(doc->template_json)) ==
		    ABX_OK)
		text = abx__json_text(o, ret_len);
	json_object_put(o);
	return text;
}

static int parse_map(json_object *o, const char *key, abx__map *map)
{
	json_object *m = NULL;
	int r = abx__json_get_object(o, key, &m, NULL);

	if (r <= 0)
		return r;
	json_object_object_foreach(m, k, v)
	{
		const char *s = abx__json_str(v);

		if (!s)
			return ABX_EINVAL;
		r = abx__map_set(map, k, s);
		if (r < 0)
			return r;
	}
	return ABX_OK;
}

/* Absent is "run". */
static int parse_activity(json_object *o, abx__pod_doc *doc)
{
	const char *name = "run";
	int r = abx__json_get_str(o, "activity", &name, NULL);

	for (int i = ABX__POD_RUN; r >= 0 && i <= ABX__POD_STOP; i++) {
		if (strcmp(activity_names[i], name) == 0) {
			doc->activity = (enum abx__pod_activity)i;
			return abx__json_get_bool(o, "keep", &doc->keep, NULL);
		}
	}
	return ABX_EINVAL;
}

int abx__pod_doc_parse(const char *text, size_t len, abx__pod_doc *ret)
{
	json_object *o = NULL, *t = NULL;
	abx__pod_doc doc = { .activity = ABX__POD_RUN };
	const char *image = NULL;
	int64_t generation = 0;
	int r = abx__json_parse_object(text, len, 0, &o, NULL);

	if (r == ABX_OK && (r = parse_map(o, "labels", &doc.labels)) >= 0 &&
	    (r = parse_map(o, "annotations", &doc.annotations)) >= 0 &&
	    (r = parse_activity(o, &doc)) >= 0) {
		r = abx__json_get_str(o, "image", &image, NULL) == 1 &&
				    abx__json_get_i64(o, "generation", 1, INT64_MAX,
						      &generation, NULL) == 1 &&
				    abx__json_get_object(o, "template", &t, NULL) == 1
			    ? ABX_OK
			    : ABX_EINVAL;
	}
	if (r == ABX_OK && !(doc.image = abx__strdup(image)))
		r = ABX_ENOMEM;
	if (r == ABX_OK) {
		doc.generation = (uint64_t)generation;
		doc.template_json = json_object_get(t);
		abx__pod_doc_done(ret);
		*ret = doc;
	} else {
		abx__pod_doc_done(&doc);
	}
	json_object_put(o);
	return r < 0 ? r : ABX_OK;
}
