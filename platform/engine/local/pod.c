/*
 * pod.c - one Pod as agentboxd knows it: its document, what podd says of it, and the two
 * seen as one by the port.
 */
#include "engine/local/state.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"

struct lpod *abx__lpod_find(struct local *l, const char *ns, const char *name)
{
	char key[160];
	abx__buf buf = ABX__BUF_INIT_CAP(sizeof(key) - 1);
	struct lpod *p = NULL;

	if (abx__buf_addf(&buf, "%s/%s", ns, name) == ABX_OK)
		HASH_FIND_STR(l->pods, abx__buf_str(&buf), p);
	abx__buf_done(&buf);
	return p;
}

/* Is there, and stays. */
struct lpod *abx__lpod_find_live(struct local *l, const char *ns, const char *name,
				 abx_error **reterr)
{
	struct lpod *p = abx__lpod_find(l, ns, name);

	if (p && !p->creating && !p->deleting)
		return p;
	abx__error_set(reterr, ABX_ENOTFOUND, "there is no Pod %s in namespace %s", name,
		       ns);
	return NULL;
}

struct lpod *abx__lpod_new(struct local *l, const char *ns, const char *name)
{
	struct lpod *p = abx__calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->local = l;
	p->writes_tail = &p->writes;
	p->exit_code = -1;
	p->ns = abx__strdup(ns);
	p->name = abx__strdup(name);
	p->key = abx__strf("%s/%s", ns, name);
	if (!p->ns || !p->name || !p->key) {
		abx__free(p->ns);
		abx__free(p->name);
		abx__free(p->key);
		abx__free(p);
		return NULL;
	}
	HASH_ADD_KEYPTR(hh, l->pods, p->key, strlen(p->key), p);
	return p;
}

static void free_strv(char **v)
{
	abx__spec_strv_free(v);
}

void abx__local_write_free(struct write *w)
{
	abx__map_done(&w->set_labels);
	abx__map_done(&w->set_annotations);
	free_strv(w->remove_labels);
	free_strv(w->remove_annotations);
	abx__free(w->image);
	abx__free(w);
}

void abx__lpod_forget_podd(struct lpod *p)
{
	p->in_podd = false;
	p->podd_generation = p->running_generation = 0;
	p->ready = false;
	p->exit_code = -1;
	abx__free(abx_take(p->running_image));
	abx__free(abx_take(p->reason));
	abx__free(abx_take(p->message));
	p->phase[0] = p->activity[0] = '\0';
}

void abx__lpod_free(struct lpod *p)
{
	HASH_DEL(p->local->pods, p);
	while (p->writes) {
		struct write *w = p->writes;

		p->writes = w->next;
		abx__local_write_free(w);
	}
	abx__lpod_forget_podd(p);
	abx__pod_doc_done(&p->doc);
	abx__pod_doc_done(&p->next);
	abx__free(p->refused);
	abx__free(p->key);
	abx__free(p->ns);
	abx__free(p->name);
	abx__free(p);
}

static enum abx__pod_phase phase_of(const struct lpod *p)
{
	if (p->refused)
		return ABX__POD_FAILED;
	if (!p->in_podd || p->podd_generation != p->doc.generation)
		return ABX__POD_PENDING;
	if (strcmp(p->phase, "failed") == 0)
		return ABX__POD_FAILED;
	return strcmp(p->phase, "running") == 0 ? ABX__POD_RUNNING : ABX__POD_PENDING;
}

/* podd's words: "run", "freeze", "stop". */
static enum abx__pod_activity activity_of(const struct lpod *p)
{
	if (strcmp(p->activity, "freeze") == 0)
		return ABX__POD_FREEZE;
	return strcmp(p->activity, "stop") == 0 ? ABX__POD_STOP : ABX__POD_RUN;
}

abx__pod abx__lpod_view(const struct lpod *p)
{
	bool current = p->podd_generation == p->doc.generation;

	return (abx__pod){
		.namespace_ = p->ns,
		.name = p->name,
		.version = p->version,
		.created_ms = p->created_ms,
		.labels = p->doc.labels,
		.annotations = p->doc.annotations,
		.image = p->doc.image,
		.running_image = p->running_image ? p->running_image : "",
		.generation = p->doc.generation,
		.running_generation = p->running_generation,
		.phase = phase_of(p),
		.ready = p->ready && p->running_generation == p->doc.generation,
		.reason = p->refused             ? "CreateError"
			  : current && p->reason ? p->reason
						 : "",
		.message = p->refused              ? p->refused
			   : current && p->message ? p->message
						   : "",
		.exit_code = p->exit_code,
		.activity = activity_of(p),
	};
}

void abx__lpod_report(struct lpod *p)
{
	struct local *l = p->local;
	abx__pod v;

	if (!l->listed || l->closing || p->creating || p->deleting)
		return;
	/* Before the sync everything is told once, at the sync. */
	if (!l->synced)
		return;
	v = abx__lpod_view(p);
	p->reported = true;
	l->on_pod(l->userdata, &v);
}

void abx__lpod_set_refused(struct lpod *p, const char *message)
{
	abx__free(p->refused);
	p->refused = message ? abx__strdup(message) : NULL;
}

/* After GONE, or when podd never had it. */
void abx__lpod_gone(struct lpod *p)
{
	struct local *l = p->local;
	abx__pod v = abx__lpod_view(p);

	v.phase = ABX__POD_GONE;
	v.ready = false;
	if (p->reported && l->synced && !l->closing)
		l->on_pod(l->userdata, &v);
	abx__lpod_free(p);
}
