/*
 * faults.h - what test-podd-faults.c orders of faulty-podd.c.
 */
#ifndef TESTS_ENGINE_FAULTS_H
#define TESTS_ENGINE_FAULTS_H

enum fault_kind {
	FAULT_NONE,
	FAULT_ALLOC,
	FAULT_FORK,
	FAULT_MOUNT,
	FAULT_DESCRIPTOR,
	FAULT_FILES,
	FAULT_SYSCALL,
};

struct fault {
	int kind;
	int countdown; /* 1: the next call */
	int hits;
};

#endif
