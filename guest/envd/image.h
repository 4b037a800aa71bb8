/*
 * image.h - what an image needs before it is a sandbox: the account `user`, sudo for it,
 * and a /etc/profile.d that login shells read.
 */
#ifndef ABX_ENVD_IMAGE_H
#define ABX_ENVD_IMAGE_H

/* Makes what is missing below `root` ("/" but for tests). Whatever cannot be made, as in
 * a read-only root, is left out: that is no reason not to start. Blocks. */
void abx__image_prepare(const char *root);

#endif
