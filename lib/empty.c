/*
 * empty.c - nothing; a library made of convenience libraries needs a source of its own.
 */
typedef int abx__empty;
