// SPDX-License-Identifier: GPL-2.0-only
/*
 * The knobs, in debugfs: softib/softibN/ for an HCA, softib/softibN/P/ for a
 * port.  They belong to the slot, so they exist before the device.
 * README.md describes each knob.
 */
#include <linux/string.h>
#include "knobs.h"
#include "softib.h"

static struct dentry *root;

struct name { const char *name; u16 value; };

static const struct name widths[] = {
	{ "1x", IB_WIDTH_1X }, { "2x", IB_WIDTH_2X }, { "4x", IB_WIDTH_4X },
	{ "8x", IB_WIDTH_8X }, { "12x", IB_WIDTH_12X },
};

static const struct name speeds[] = {
	{ "sdr", IB_SPEED_SDR }, { "ddr", IB_SPEED_DDR }, { "qdr", IB_SPEED_QDR },
	{ "fdr", IB_SPEED_FDR }, { "edr", IB_SPEED_EDR }, { "hdr", IB_SPEED_HDR },
	{ "ndr", IB_SPEED_NDR },
};

static const struct name mtus[] = {
	{ "256", IB_MTU_256 }, { "512", IB_MTU_512 }, { "1024", IB_MTU_1024 },
	{ "2048", IB_MTU_2048 }, { "4096", IB_MTU_4096 },
};

static const struct name states[] = {
	{ "none", IB_PORT_NOP }, { "down", IB_PORT_DOWN }, { "init", IB_PORT_INIT },
	{ "armed", IB_PORT_ARMED }, { "active", IB_PORT_ACTIVE },
};

static const struct name physes[] = {
	{ "sleep", IB_PORT_PHYS_STATE_SLEEP }, { "polling", IB_PORT_PHYS_STATE_POLLING },
	{ "disabled", IB_PORT_PHYS_STATE_DISABLED }, { "linkup", IB_PORT_PHYS_STATE_LINK_UP },
};

static int find(const struct name *table, int n, const char *name)
{
	int i;

	for (i = 0; i < n; i++)
		if (!strcmp(table[i].name, name))
			return i;
	return -EINVAL;
}

#define FIND(table, name) find(table, ARRAY_SIZE(table), name)

static const char *name_of(const struct name *table, int n, u16 value)
{
	int i;

	for (i = 0; i < n; i++)
		if (table[i].value == value)
			return table[i].name;
	return "?";
}

#define NAME_OF(table, value) name_of(table, ARRAY_SIZE(table), value)

/* A width includes all narrower widths, as on real ports. */
int sib_parse_width(const char *name, u8 *mask)
{
	int i = FIND(widths, name);

	if (i < 0)
		return i;
	for (*mask = 0; i >= 0; i--)
		*mask |= widths[i].value;
	return 0;
}

int sib_parse_speed(const char *name, u16 *mask)
{
	int i = FIND(speeds, name);

	if (i < 0)
		return i;
	for (*mask = 0; i >= 0; i--)
		*mask |= speeds[i].value;
	return 0;
}

int sib_parse_state(const char *name, u8 *state)
{
	int i = FIND(states, name);

	if (i < 0)
		return i;
	*state = states[i].value;
	return 0;
}

int sib_parse_mtu(const char *name, u8 *mtu)
{
	int i = FIND(mtus, name);

	if (i < 0)
		return i;
	*mtu = mtus[i].value;
	return 0;
}

ssize_t sib_store_text(struct file *file, const char __user *from, size_t len, size_t max,
		       sib_store_fn store)
{
	char *text;
	int ret;

	if (len > max)
		return -EINVAL;
	text = memdup_user_nul(from, len);
	if (IS_ERR(text))
		return PTR_ERR(text);
	ret = store(((struct seq_file *)file->private_data)->private, strim(text));
	kfree(text);
	return ret ?: len;
}

/* ---- HCA ---- */

static int ops_show(struct seq_file *m, void *unused)
{
	static const char *const name[SIB_OPS] = {
		"send", "send_inv", "read", "write", "reg_mr", "local_inv",
		"read_bytes", "write_bytes", "nak",
	};
	struct sib_hca *hca = m->private;
	int i;

	for (i = 0; i < SIB_OPS; i++)
		seq_printf(m, "%s %llu\n", name[i], READ_ONCE(hca->ops[i]));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(ops);

/* The parent as the kernel names it: softib.N or a PCI address; an empty line without a driver. */
static int device_show(struct seq_file *m, void *unused)
{
	struct sib_hca *hca = m->private;

	spin_lock_irq(&sib_lock);
	seq_printf(m, "%s\n", hca->dev ? dev_name(hca->dev->ib.dev.parent) : "");
	spin_unlock_irq(&sib_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(device);

static int present_show(struct seq_file *m, void *unused)
{
	struct sib_hca *hca = m->private;

	seq_printf(m, "%d\n", READ_ONCE(hca->pdev) || sib_pci_present(hca) ? 1 : 0);
	return 0;
}

static int present_store(void *data, char *text)
{
	bool on;
	int ret = kstrtobool(text, &on);

	if (ret)
		return ret;
	return on ? sib_hca_insert(data) : sib_hca_pull(data);
}
LINE_KNOB(present);

static int guid_show(struct seq_file *m, void *unused)
{
	struct sib_port *p = m->private;

	seq_printf(m, "%#018llx\n", be64_to_cpu(READ_ONCE(p->guids[0])));
	return 0;
}

static int guid_store(void *data, char *text)
{
	u64 guid;
	int ret = kstrtou64(text, 0, &guid);

	if (!ret)
		sib_port_set_guid(data, cpu_to_be64(guid));
	return ret;
}
LINE_KNOB(guid);

static int node_guid_show(struct seq_file *m, void *unused)
{
	struct sib_hca *hca = m->private;

	seq_printf(m, "%#018llx\n", be64_to_cpu(READ_ONCE(hca->node_guid)));
	return 0;
}

/* Counts from the next probe on. */
static int node_guid_store(void *data, char *text)
{
	struct sib_hca *hca = data;
	u64 guid;
	int ret = kstrtou64(text, 0, &guid);

	if (!ret)
		WRITE_ONCE(hca->node_guid, cpu_to_be64(guid));
	return ret;
}
LINE_KNOB(node_guid);

static int reset_show(struct seq_file *m, void *unused)
{
	struct sib_hca *hca = m->private;

	seq_printf(m, "%s\n", delayed_work_pending(&hca->insert) ? "resetting" : "idle");
	return 0;
}

static int reset_store(void *data, char *text)
{
	u32 ms;
	int ret = kstrtou32(text, 0, &ms);

	return ret ?: sib_hca_reset(data, ms);
}
LINE_KNOB(reset);

/* ---- ports ---- */

static int cable_show(struct seq_file *m, void *unused)
{
	struct sib_port *p = m->private;

	seq_printf(m, "%d\n", p->cable);
	return 0;
}

static int cable_store(void *data, char *text)
{
	struct sib_port *p = data;
	bool on;
	int ret = kstrtobool(text, &on);

	if (ret)
		return ret;
	spin_lock_irq(&sib_lock);
	p->cable = on;
	spin_unlock_irq(&sib_lock);
	sib_link_update(p);
	return 0;
}
LINE_KNOB(cable);

static int width_show(struct seq_file *m, void *unused)
{
	struct sib_port *p = m->private;

	seq_printf(m, "%s\n", NAME_OF(widths, p->width_active));
	return 0;
}

static int width_store(void *data, char *text)
{
	u8 mask;
	int ret = sib_parse_width(text, &mask);

	if (!ret)
		sib_port_set_caps(data, mask, 0, 0);
	return ret;
}
LINE_KNOB(width);

static int speed_show(struct seq_file *m, void *unused)
{
	struct sib_port *p = m->private;

	seq_printf(m, "%s\n", NAME_OF(speeds, p->speed_active));
	return 0;
}

static int speed_store(void *data, char *text)
{
	u16 mask;
	int ret = sib_parse_speed(text, &mask);

	if (!ret)
		sib_port_set_caps(data, 0, mask, 0);
	return ret;
}
LINE_KNOB(speed);

static int mtu_show(struct seq_file *m, void *unused)
{
	struct sib_port *p = m->private;

	seq_printf(m, "%s\n", NAME_OF(mtus, p->mtu_cap));
	return 0;
}

static int mtu_store(void *data, char *text)
{
	u8 mtu;
	int ret = sib_parse_mtu(text, &mtu);

	if (!ret)
		sib_port_set_caps(data, 0, 0, mtu);
	return ret;
}
LINE_KNOB(mtu);

static int force_state_show(struct seq_file *m, void *unused)
{
	struct sib_port *p = m->private;

	seq_printf(m, "%s\n", NAME_OF(states, p->forced_state));
	return 0;
}

static int force_state_store(void *data, char *text)
{
	u8 state;
	int ret = sib_parse_state(text, &state);

	if (!ret)
		sib_port_force(data, state);
	return ret;
}
LINE_KNOB(force_state);

static int phys_state_show(struct seq_file *m, void *unused)
{
	struct sib_port *p = m->private;

	seq_printf(m, "%s\n", NAME_OF(physes, sib_port_phys(p)));
	return 0;
}

static int phys_state_store(void *data, char *text)
{
	int i = FIND(physes, text);

	/* training leads to LinkUp, not a request */
	if (i < 0 || physes[i].value == IB_PORT_PHYS_STATE_LINK_UP)
		return -EINVAL;
	sib_port_set_phys(data, physes[i].value);
	return 0;
}
LINE_KNOB(phys_state);

/* CLASS drop N|all, CLASS delay MS, CLASS pass */
static int mad_show(struct seq_file *m, void *unused)
{
	struct sib_port *p = m->private;
	int i;

	for (i = 0; i < SIB_MAD_CLASSES; i++) {
		const struct sib_mad_rule *rule = &p->mad[i];

		if (rule->drop == U32_MAX)
			seq_printf(m, "%s drop all\n", sib_mad_class_name[i]);
		else if (rule->drop)
			seq_printf(m, "%s drop %u\n", sib_mad_class_name[i], rule->drop);
		else if (rule->delay_ms)
			seq_printf(m, "%s delay %u\n", sib_mad_class_name[i], rule->delay_ms);
		else
			seq_printf(m, "%s pass\n", sib_mad_class_name[i]);
	}
	return 0;
}

static int mad_store(void *data, char *text)
{
	char *class = strsep(&text, " "), *verb = strsep(&text, " "), *arg = text;
	struct sib_mad_rule rule = { 0 };
	struct sib_port *p = data;
	int i, ret = 0;

	if (!verb)
		return -EINVAL;
	i = match_string(sib_mad_class_name, SIB_MAD_CLASSES, class);
	if (i < 0)
		return i;
	if (!strcmp(verb, "drop") && arg && !strcmp(arg, "all"))
		rule.drop = U32_MAX;
	else if (!strcmp(verb, "drop") && arg)
		ret = kstrtou32(arg, 0, &rule.drop);
	else if (!strcmp(verb, "delay") && arg)
		ret = kstrtou32(arg, 0, &rule.delay_ms);
	else if (strcmp(verb, "pass") || arg)
		ret = -EINVAL;
	if (ret)
		return ret;
	spin_lock_irq(&sib_lock);
	p->mad[i] = rule;
	spin_unlock_irq(&sib_lock);
	return 0;
}
LINE_KNOB(mad);

static int m_key_show(struct seq_file *m, void *unused)
{
	struct sib_port *p = m->private;

	seq_printf(m, "%#llx\n", be64_to_cpu(p->m_key));
	return 0;
}

static int m_key_store(void *data, char *text)
{
	struct sib_port *p = data;
	u64 key;
	int ret = kstrtou64(text, 0, &key);

	if (ret)
		return ret;
	spin_lock_irq(&sib_lock);
	p->m_key = cpu_to_be64(key);
	spin_unlock_irq(&sib_lock);
	return 0;
}
LINE_KNOB(m_key);

static int m_key_protect_show(struct seq_file *m, void *unused)
{
	struct sib_port *p = m->private;

	seq_printf(m, "%u\n", p->m_key_protect);
	return 0;
}

static int m_key_protect_store(void *data, char *text)
{
	struct sib_port *p = data;
	u8 bits;
	int ret = kstrtou8(text, 0, &bits);

	if (ret || bits > 3)
		return ret ?: -EINVAL;
	spin_lock_irq(&sib_lock);
	p->m_key_protect = bits;
	spin_unlock_irq(&sib_lock);
	return 0;
}
LINE_KNOB(m_key_protect);

/* ---- */

static const struct { const char *name; const struct file_operations *fops; } port_knobs[] = {
	{ "cable", &cable_fops },
	{ "force_state", &force_state_fops },
	{ "guid", &guid_fops },
	{ "m_key", &m_key_fops },
	{ "m_key_protect", &m_key_protect_fops },
	{ "mad", &mad_fops },
	{ "mtu", &mtu_fops },
	{ "phys_state", &phys_state_fops },
	{ "speed", &speed_fops },
	{ "width", &width_fops },
};

static void port_add(struct sib_port *p, struct dentry *hca)
{
	struct dentry *dir, *counters;
	char num[4];
	int i;

	snprintf(num, sizeof(num), "%d", p->num);
	dir = debugfs_create_dir(num, hca);
	for (i = 0; i < ARRAY_SIZE(port_knobs); i++)
		debugfs_create_file(port_knobs[i].name, 0600, dir, p, port_knobs[i].fops);
	debugfs_create_u32("drop_above", 0600, dir, &p->drop_above);
	debugfs_create_u32("fail_joins", 0600, dir, &p->fail_joins);
	debugfs_create_x16("fail_joins_status", 0600, dir, &p->fail_joins_status);
	debugfs_create_u32("sweep_ms", 0600, dir, &p->sweep_ms);
	debugfs_create_u32("train_ms", 0600, dir, &p->train_ms);
	sib_events_knobs(p, dir);
	counters = debugfs_create_dir("counters", dir);
	for (i = 0; i < SIB_COUNTERS; i++)
		debugfs_create_u64(sib_counter_name[i], 0600, counters, &p->counter[i]);
}

void sib_knobs_init(void)
{
	root = debugfs_create_dir("softib", NULL);
}

void sib_knobs_add(struct sib_hca *hca)
{
	struct dentry *dir = debugfs_create_dir(hca->name, root);
	int n;

	debugfs_create_file("device", 0400, dir, hca, &device_fops);
	debugfs_create_bool("grh_required", 0600, dir, &hca->grh_knob);
	debugfs_create_file("node_guid", 0600, dir, hca, &node_guid_fops);
	debugfs_create_file("ops", 0400, dir, hca, &ops_fops);
	debugfs_create_u32("planes", 0600, dir, &hca->planes);
	debugfs_create_file("present", 0600, dir, hca, &present_fops);
	debugfs_create_file("reset", 0600, dir, hca, &reset_fops);
	sib_fault_knobs(hca, dir);
	for (n = 0; n < sib_num_ports; n++)
		port_add(&hca->port[n], dir);
}

/* Waits for running accesses to the knobs. */
void sib_knobs_exit(void)
{
	debugfs_remove_recursive(root);
}
