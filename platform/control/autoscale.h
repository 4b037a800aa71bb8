/*
 * autoscale.h - how big a pool should be (crds.md, section 8). Pure: what is known goes
 * in, a decision comes out.
 *
 * Times are milliseconds of one clock; 0 means never. ABX__NO_CAP (route.h) means no
 * maximum.
 */
#ifndef ABX_CONTROL_AUTOSCALE_H
#define ABX_CONTROL_AUTOSCALE_H

#include <stdbool.h>
#include <stdint.h>

enum abx__scale_mode {
	ABX__SCALE_CONSERVATIVE,
	ABX__SCALE_DEFAULT,
	ABX__SCALE_AGGRESSIVE
};

typedef struct abx__scale_policy {
	bool enabled;
	int min, max; /* of the group's sum */
	enum abx__scale_mode mode;
	int cooldown_s, idle_threshold_s, quiet_window_s, saturation_cooldown_s;
	int idle_timeout_s, stabilization_s, protection_s;
} abx__scale_policy;

#define ABX__SCALE_POLICY_DEFAULT                                        \
	{                                                                \
		.max = -1, .mode = ABX__SCALE_DEFAULT, .cooldown_s = 30, \
		.idle_threshold_s = 30, .quiet_window_s = 300,           \
		.saturation_cooldown_s = 60, .idle_timeout_s = 300,      \
		.stabilization_s = 60, .protection_s = 10                \
	}

enum abx__scale_result {
	ABX__SCALE_NEVER,
	ABX__SCALE_ENOUGH,
	ABX__SCALE_JUST_RIGHT,
	ABX__SCALE_INSUFFICIENT,
	ABX__SCALE_FAILED,
};

/* Kept per pool between passes. */
typedef struct abx__scale_state {
	int64_t last_up_ms, last_down_ms;
	int64_t idle_zero_since_ms;
	int64_t last_attempt_ms;
	enum abx__scale_result last_result;
	bool session; /* a scale-down goes on */
} abx__scale_state;

typedef struct abx__scale_input {
	int64_t now_ms;
	int replicas; /* R */
	int running;  /* run */
	int idle;     /* idle, ready or not */
	int ready_idle;
	int waiting;     /* Q */
	int aged_idle;   /* idle for at least the policy's idle timeout */
	int group_total; /* G */
	int member_min, member_max;
	int64_t last_create_ms; /* a sandbox was asked for */
	bool sibling_first; /* one with strictly lower scaleUpPriority has been without
			       idle long enough */
} abx__scale_input;

enum abx__scale_what {
	ABX__SCALE_NOTHING,
	ABX__SCALE_FIX, /* more run than are wanted: R follows */
	ABX__SCALE_UP,
	ABX__SCALE_DOWN,
};

enum abx__scale_session {
	ABX__SESSION_NONE, /* nothing to tell */
	ABX__SESSION_STARTED,
	ABX__SESSION_COMPLETED,
	ABX__SESSION_STUCK,
	ABX__SESSION_ABORTED,
};

typedef struct abx__scale_decision {
	enum abx__scale_what what;
	int replicas; /* the new R */
	enum abx__scale_session session;
} abx__scale_decision;

/* Buffer, ceiling and scale-down step of a mode. */
int abx__scale_buffer(enum abx__scale_mode mode, int demand);
int abx__scale_ceiling(enum abx__scale_mode mode, int demand);
int abx__scale_step(enum abx__scale_mode mode, int replicas);

/* One pass; moves `state`. An attempt is recorded as Enough: whoever finds the growth
   refused says so with abx__scale_refused(). */
abx__scale_decision abx__scale_decide(const abx__scale_policy *policy,
				      const abx__scale_input *in,
				      abx__scale_state *state);
void abx__scale_refused(abx__scale_state *state, int64_t now_ms,
			enum abx__scale_result result);
/* The last attempt failed and its cooldown has not passed: the moment it does; else 0. */
int64_t abx__scale_saturated_until(const abx__scale_policy *policy,
				   const abx__scale_state *state, int64_t now_ms);

#endif
