// SPDX-License-Identifier: GPL-2.0-only
/*
 * Faults of the card: firmware that answers late or not at all, a driver that
 * takes long or gives up at probe.  Each knob is one word, read and written whole
 * without sib_lock.
 */
#include <linux/delay.h>
#include "knobs.h"
#include "softib.h"

#define HANG_SLICE_MS 20	/* how soon a hang ends when its knob is 0 */

static unsigned int probe_ms[SIB_MAX_HCAS], probe_ms_count;
module_param_array(probe_ms, uint, &probe_ms_count, 0444);
MODULE_PARM_DESC(probe_ms, "how long the driver takes to probe each HCA");
static int probe_error[SIB_MAX_HCAS], probe_error_count;
module_param_array(probe_error, int, &probe_error_count, 0444);
MODULE_PARM_DESC(probe_error, "what probing each HCA returns: 0 or a negative errno");

void sib_fault_init(struct sib_hca *hca)
{
	hca->probe_ms = probe_ms[sib_list_index(hca, probe_ms_count)];
	hca->probe_error = probe_error[sib_list_index(hca, probe_error_count)];
}

/* What a driver does before the first command: wait for the firmware, or give up. */
int sib_fault_probe(struct sib_hca *hca, struct device *dev)
{
	u32 ms = READ_ONCE(hca->probe_ms);
	int err;

	if (ms) {
		dev_info(dev, "initialising, %u ms\n", ms);
		msleep(ms);
	}
	err = READ_ONCE(hca->probe_error);
	if (err)
		dev_err(dev, "initialisation failed: %d\n", err);
	return err;
}

static bool is_hung(struct sib_hca *hca, unsigned long began)
{
	/* a driver gives up the commands of a card that has left its slot */
	return !READ_ONCE(hca->gone) &&
	       time_before(jiffies, began + msecs_to_jiffies(READ_ONCE(hca->hang_ms)));
}

/*
 * A verb that is a command of the firmware.  Like mlx5, it waits without a reply for
 * hang_ms, ignores signals, and then fails with query_error.
 */
int sib_command(struct sib_hca *hca)
{
	unsigned long began = jiffies;

	might_sleep();
	while (is_hung(hca, began))
		msleep(HANG_SLICE_MS);
	return READ_ONCE(hca->query_error);
}

/* ---- knobs ---- */

static int error_show(struct seq_file *m, void *unused)
{
	seq_printf(m, "%d\n", READ_ONCE(*(int *)m->private));
	return 0;
}

static int error_store(void *data, char *text)
{
	int err, ret = kstrtoint(text, 0, &err);

	if (ret || err > 0 || err < -MAX_ERRNO)
		return ret ?: -EINVAL;
	WRITE_ONCE(*(int *)data, err);
	return 0;
}
LINE_KNOB(error);

void sib_fault_knobs(struct sib_hca *hca, struct dentry *dir)
{
	debugfs_create_u32("hang_ms", 0600, dir, &hca->hang_ms);
	debugfs_create_u32("probe_ms", 0600, dir, &hca->probe_ms);
	debugfs_create_file("probe_error", 0600, dir, &hca->probe_error, &error_fops);
	debugfs_create_file("query_error", 0600, dir, &hca->query_error, &error_fops);
}
