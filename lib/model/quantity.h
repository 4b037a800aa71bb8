/*
 * quantity.h - Kubernetes quantities ("500m", "2Gi", "1500M", "1e3") as exact integers,
 * and back.
 *
 * A value is never rounded: what is finer than the unit asked for, negative, or past 63
 * bits is refused.
 */
#ifndef ABX_MODEL_QUANTITY_H
#define ABX_MODEL_QUANTITY_H

#include <stdint.h>

#include <agentbox/error.h>

#define ABX__QUANTITY_SIZE 32

/* Thousandths, as CPU is counted: "500m" is 500, "2" is 2000. ABX_EINVAL. */
int abx__quantity_milli(const char *s, int64_t *ret, abx_error **reterr);
/* Whole units, as memory is counted in bytes: "2Gi" is 2147483648. ABX_EINVAL. */
int abx__quantity_bytes(const char *s, int64_t *ret, abx_error **reterr);
/* The shortest spelling: 500 is "500m", 2000 is "2". */
void abx__quantity_print_milli(int64_t milli, char out[ABX__QUANTITY_SIZE]);
/* The largest binary suffix that divides it, else the largest decimal one, else plain
 * digits. */
void abx__quantity_print_bytes(int64_t bytes, char out[ABX__QUANTITY_SIZE]);

#endif
