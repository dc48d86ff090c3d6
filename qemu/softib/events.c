// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events: what the consumers hear of a port, and the script that loses, repeats or
 * delays them and adds others.  README.md has its format.
 */
#include "knobs.h"
#include "softib.h"

#define SCRIPT_MAX	SZ_64K
#define NO_EVENT	(-1)

static bool sm_change = true;
module_param(sm_change, bool, 0444);
MODULE_PARM_DESC(sm_change, "report IB_EVENT_SM_CHANGE, which mlx5 does not have");

/* In this order a consumer finds all other changes when it gets PORT_ACTIVE. */
static const struct { const char *name; enum ib_event_type type; } event_table[SIB_EVENTS] = {
	{ "gid_change", IB_EVENT_GID_CHANGE },
	{ "lid_change", IB_EVENT_LID_CHANGE },
	{ "pkey_change", IB_EVENT_PKEY_CHANGE },
	{ "sm_change", IB_EVENT_SM_CHANGE },
	{ "client_reregister", IB_EVENT_CLIENT_REREGISTER },
	{ "port_active", IB_EVENT_PORT_ACTIVE },
	{ "port_err", IB_EVENT_PORT_ERR },
	{ "device_fatal", IB_EVENT_DEVICE_FATAL },
};

/* An event to come.  `at`: ktime, or nanoseconds since the start of its trace. */
struct late_event {
	struct list_head node;
	s64		at;
	int		event;		/* index in event_table */
};

/* ---- reports; not under sib_lock ---- */

/* The reference keeps the device registered meanwhile. */
static struct sib_device *get_device_of(struct sib_port *p)
{
	struct sib_device *dev;
	unsigned long fl;

	spin_lock_irqsave(&sib_lock, fl);
	dev = p->hca->dev;
	if (dev && !ib_device_try_get(&dev->ib))
		dev = NULL;
	spin_unlock_irqrestore(&sib_lock, fl);
	return dev;
}

static void report(struct sib_port *p, struct sib_device *dev, int event)
{
	struct ib_event ev = {
		.device = &dev->ib, .element.port_num = p->num,
		.event = event_table[event].type,
	};

	ib_dispatch_event(&ev);
}

/* ---- events to come; under sib_lock ---- */

static void insert_late(struct list_head *list, struct late_event *new)
{
	struct list_head *before;

	list_for_each_prev(before, list)
		if (list_entry(before, struct late_event, node)->at <= new->at)
			break;
	list_add(&new->node, before);
}

static void arm(struct sib_port *p)
{
	struct late_event *e = list_first_entry_or_null(&p->late, struct late_event, node);

	if (e)
		hrtimer_start(&p->late_timer, ns_to_ktime(e->at), HRTIMER_MODE_ABS_SOFT);
}

static void start_trace(struct sib_port *p)
{
	struct late_event *e, *next;
	s64 now = ktime_get_ns();

	p->script.start = NO_EVENT;
	list_for_each_entry_safe(e, next, &p->script.trace, node) {
		list_del(&e->node);
		e->at += now;
		insert_late(&p->late, e);
	}
	arm(p);
}

static void delay_event(struct sib_port *p, int event, u32 ms)
{
	struct late_event *e = kmalloc(sizeof(*e), GFP_ATOMIC);

	if (!e)
		return;
	e->event = event;
	e->at = ktime_get_ns() + (s64)ms * NSEC_PER_MSEC;
	insert_late(&p->late, e);
	arm(p);
}

static void free_list(struct list_head *list)
{
	struct late_event *e, *next;

	list_for_each_entry_safe(e, next, list, node)
		kfree(e);
	INIT_LIST_HEAD(list);
}

static enum hrtimer_restart late_events(struct hrtimer *timer)
{
	struct sib_port *p = container_of(timer, struct sib_port, late_timer);
	struct sib_device *dev = get_device_of(p);
	struct late_event *e, *next;
	s64 now = ktime_get_ns();
	LIST_HEAD(due);
	unsigned long fl;

	spin_lock_irqsave(&sib_lock, fl);
	list_for_each_entry_safe(e, next, &p->late, node) {
		if (e->at > now)
			break;
		list_move_tail(&e->node, &due);
	}
	arm(p);
	spin_unlock_irqrestore(&sib_lock, fl);
	if (dev) {
		list_for_each_entry(e, &due, node)
			report(p, dev, e->event);
		ib_device_put(&dev->ib);
	}
	free_list(&due);
	return HRTIMER_NORESTART;
}

/* ---- scripts for events of a port ---- */

/* How many times the event is reported now. */
static int run_script(struct sib_port *p, struct sib_device *dev, int event)
{
	struct sib_event_rule *rule = &p->script.rule[event];
	bool drop;
	unsigned long fl;
	int times = 1;

	spin_lock_irqsave(&sib_lock, fl);
	if (p->script.start == event)
		start_trace(p);
	drop = sib_take(&rule->drop);
	if (drop)
		times = 0;
	else if (sib_take(&rule->dup))
		times = 2;
	for (; rule->delay_ms && times; times--)
		delay_event(p, event, rule->delay_ms);
	spin_unlock_irqrestore(&sib_lock, fl);
	if (drop)
		ibdev_info(&dev->ib, "port %u: %s dropped\n", p->num, event_table[event].name);
	return times;
}

/* Not under sib_lock. */
void sib_port_events(struct sib_port *p, unsigned long events)
{
	struct sib_device *dev = events ? get_device_of(p) : NULL;
	int i, times;

	if (!dev)
		return;
	for (i = 0; i < SIB_EVENTS; i++) {
		if (!(events & BIT(event_table[i].type)))
			continue;
		/* Tests measure from this message; hardware has no such message. */
		if (events & BIT(event_table[i].type) & (SIB_EV(PORT_ACTIVE) | SIB_EV(PORT_ERR)))
			ibdev_info(&dev->ib, "port %u: %s\n", p->num,
				   event_table[i].type == IB_EVENT_PORT_ACTIVE ? "ACTIVE" :
										 "not ACTIVE");
		for (times = run_script(p, dev, i); times; times--)
			report(p, dev, i);
	}
	ib_device_put(&dev->ib);
}

/* ---- the script ---- */

static void script_reset(struct sib_script *script)
{
	int i;

	memset(script->rule, 0, sizeof(script->rule));
	script->start = NO_EVENT;
	INIT_LIST_HEAD(&script->trace);
	for (i = 0; i < SIB_EVENTS; i++)
		if (event_table[i].type == IB_EVENT_SM_CHANGE && !sm_change)
			script->rule[i].drop = U32_MAX;
}

static int find_event(const char *name)
{
	int i;

	for (i = 0; name && i < SIB_EVENTS; i++)
		if (!strcmp(event_table[i].name, name))
			return i;
	return -EINVAL;
}

/* drop EVENT [N], dup EVENT [N], delay MS EVENT; EVENT: or `any` */
static int parse_rule(struct sib_script *script, const char *verb, char *word[2])
{
	bool delay = !strcmp(verb, "delay");
	const char *name = delay ? word[1] : word[0], *number = delay ? word[0] : word[1];
	bool any = name && !strcmp(name, "any");
	int event = any ? 0 : find_event(name), last = any ? SIB_EVENTS - 1 : event;
	u32 n = U32_MAX;
	int ret;

	if (event < 0)
		return event;
	ret = number ? kstrtou32(number, 10, &n) : 0;
	if (ret)
		return ret;
	for (; event <= last; event++) {
		if (delay)
			script->rule[event].delay_ms = n;
		else if (!strcmp(verb, "drop"))
			script->rule[event].drop = n;
		else
			script->rule[event].dup = n;
	}
	return 0;
}

/* NS EVENT */
static int parse_trace(struct sib_script *script, const char *at, const char *name)
{
	struct late_event *e;
	int ret, event = find_event(name);
	u64 ns;

	if (event < 0)
		return event;
	ret = kstrtou64(at, 10, &ns);
	if (ret || ns > KTIME_MAX / 2)
		return ret ?: -ERANGE;
	e = kmalloc(sizeof(*e), GFP_KERNEL);
	if (!e)
		return -ENOMEM;
	e->event = event;
	e->at = ns;
	insert_late(&script->trace, e);
	return 0;
}

static int parse_line(struct sib_script *script, char *line)
{
	char *verb = strsep(&line, " "), *word[2];

	word[0] = strsep(&line, " ");
	word[1] = strsep(&line, " ");
	if (!*verb || *verb == '#')
		return 0;
	if (line)
		return -EINVAL;
	if (!strcmp(verb, "drop") || !strcmp(verb, "dup") || !strcmp(verb, "delay"))
		return parse_rule(script, verb, word);
	if (word[1])
		return -EINVAL;
	if (strcmp(verb, "start"))
		return parse_trace(script, verb, word[0]);
	script->start = find_event(word[0]);
	return min(script->start, 0);
}

/* Takes the place of the script before, and of what that one had still to report. */
static void script_install(struct sib_port *p, struct sib_script *new)
{
	LIST_HEAD(old);

	spin_lock_irq(&sib_lock);
	list_splice_init(&p->late, &old);
	list_splice_init(&p->script.trace, &old);
	memcpy(p->script.rule, new->rule, sizeof(new->rule));
	p->script.start = new->start;
	list_splice_init(&new->trace, &p->script.trace);
	if (p->script.start == NO_EVENT)
		start_trace(p);
	spin_unlock_irq(&sib_lock);
	free_list(&old);
}

static int events_store(void *data, char *text)
{
	struct sib_script script;
	int ret = 0;
	char *line;

	script_reset(&script);
	while (!ret && (line = strsep(&text, "\n")))
		ret = parse_line(&script, strim(line));
	if (!ret)
		script_install(data, &script);
	free_list(&script.trace);
	return ret;
}

static void show_count(struct seq_file *m, const char *verb, int event, u32 n)
{
	if (n == U32_MAX)
		seq_printf(m, "%s %s\n", verb, event_table[event].name);
	else if (n)
		seq_printf(m, "%s %s %u\n", verb, event_table[event].name, n);
}

/* What is left to do; times are from now on, or from the start that is waited for. */
static int events_show(struct seq_file *m, void *unused)
{
	struct sib_port *p = m->private;
	struct sib_script *script = &p->script;
	struct late_event *e;
	s64 now = ktime_get_ns();
	int i;

	spin_lock_irq(&sib_lock);
	for (i = 0; i < SIB_EVENTS; i++) {
		show_count(m, "drop", i, script->rule[i].drop);
		show_count(m, "dup", i, script->rule[i].dup);
		if (script->rule[i].delay_ms)
			seq_printf(m, "delay %u %s\n", script->rule[i].delay_ms,
				   event_table[i].name);
	}
	if (script->start != NO_EVENT)
		seq_printf(m, "start %s\n", event_table[script->start].name);
	list_for_each_entry(e, &script->trace, node)
		seq_printf(m, "%lld %s\n", e->at, event_table[e->event].name);
	list_for_each_entry(e, &p->late, node)
		seq_printf(m, "%lld %s\n", max(e->at - now, 0LL), event_table[e->event].name);
	spin_unlock_irq(&sib_lock);
	return 0;
}
TEXT_KNOB(events, SCRIPT_MAX);

void sib_events_knobs(struct sib_port *p, struct dentry *dir)
{
	debugfs_create_file("events", 0600, dir, p, &events_fops);
}

void sib_events_init(struct sib_port *p)
{
	script_reset(&p->script);
	INIT_LIST_HEAD(&p->late);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(&p->late_timer, late_events, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
#else
	hrtimer_init(&p->late_timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	p->late_timer.function = late_events;
#endif
}

/* When neither a device nor a knob is left. */
void sib_events_exit(struct sib_port *p)
{
	hrtimer_cancel(&p->late_timer);
	free_list(&p->late);
	free_list(&p->script.trace);
}
