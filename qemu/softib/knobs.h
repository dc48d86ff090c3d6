/* SPDX-License-Identifier: GPL-2.0-only */
/* Files of one line in debugfs: a show and a store function make a knob. */
#ifndef SOFTIB_KNOBS_H
#define SOFTIB_KNOBS_H

#include <linux/debugfs.h>
#include <linux/seq_file.h>

typedef int (*sib_store_fn)(void *data, char *text);

/* Writes longer than max octets are refused. */
ssize_t sib_store_text(struct file *file, const char __user *from, size_t len, size_t max,
		       sib_store_fn store);

#define SIB_LINE_MAX 64

#define TEXT_KNOB(name, max)								\
static int name##_open(struct inode *inode, struct file *file)				\
{											\
	return single_open(file, name##_show, inode->i_private);			\
}											\
static ssize_t name##_write(struct file *file, const char __user *from, size_t len,	\
			    loff_t *pos)						\
{											\
	return sib_store_text(file, from, len, max, name##_store);			\
}											\
static const struct file_operations name##_fops = {					\
	.owner = THIS_MODULE, .open = name##_open, .read = seq_read,			\
	.write = name##_write, .llseek = seq_lseek, .release = single_release,		\
}

#define LINE_KNOB(name) TEXT_KNOB(name, SIB_LINE_MAX)

#endif
