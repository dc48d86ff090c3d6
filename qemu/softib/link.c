// SPDX-License-Identifier: GPL-2.0-only
/* The link below two ports: the cable, its training, width and speed. */
#include "softib.h"

/* What opensm gives to two HCAs without a switch; the SM is at the odd end. */
#define WARM_SM_LID		1
#define WARM_LID		2
#define WARM_SUBNET_TIMEOUT	18	/* 4.096 us << 18 is about 1 s */

static void link_idle_rate(struct sib_port *p)
{
	p->width_active = p->width_supported & IB_WIDTH_4X ? IB_WIDTH_4X : IB_WIDTH_1X;
	p->speed_active = IB_SPEED_SDR;
}

/* Derive the port attributes from the knobs width, speed and mtu. */
void sib_link_caps(struct sib_port *p)
{
	p->width_enabled = p->width_supported;
	p->speed_enabled = p->speed_supported;
	if (p->speed_supported >= IB_SPEED_FDR)
		p->cap_mask |= IB_PORT_EXTENDED_SPEEDS_SUP;
	else
		p->cap_mask &= ~IB_PORT_EXTENDED_SPEEDS_SUP;
	p->neighbor_mtu = min(p->neighbor_mtu, p->mtu_cap);
	if (p->phys != IB_PORT_PHYS_STATE_LINK_UP)
		link_idle_rate(p);
}

static unsigned long port_link_lost(struct sib_port *p)
{
	if (!p || p->phys != IB_PORT_PHYS_STATE_LINK_UP)
		return 0;
	p->phys = IB_PORT_PHYS_STATE_POLLING;
	p->counter[SIB_CNT_LINK_DOWNED]++;
	link_idle_rate(p);
	return sib_port_set_state(p, IB_PORT_DOWN);
}

static unsigned long port_link_found(struct sib_port *p, u8 width, u16 speed)
{
	p->phys = IB_PORT_PHYS_STATE_LINK_UP;
	p->width_active = width;
	p->speed_active = speed;
	return sib_port_set_state(p, IB_PORT_INIT);
}

static u8 widest(u8 mask)
{
	static const u8 order[] = {
		IB_WIDTH_12X, IB_WIDTH_8X, IB_WIDTH_4X, IB_WIDTH_2X, IB_WIDTH_1X
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(order); i++)
		if (mask & order[i])
			return order[i];
	return 0;
}

/* Whether the physical layer has a partner to train with. */
static bool link_present(const struct sib_port *a, const struct sib_port *b)
{
	return b && a->cable && b->cable && a->hca->powered && b->hca->powered &&
	       a->hca->ethernet == b->hca->ethernet &&
	       a->phys != IB_PORT_PHYS_STATE_DISABLED && a->phys != IB_PORT_PHYS_STATE_SLEEP &&
	       b->phys != IB_PORT_PHYS_STATE_DISABLED && b->phys != IB_PORT_PHYS_STATE_SLEEP &&
	       (a->width_enabled & b->width_enabled) && (a->speed_enabled & b->speed_enabled);
}

static void link_train(struct sib_link *link, unsigned long events[2])
{
	struct sib_port *a = link->end[0], *b = link->end[1];
	u8 width = widest(a->width_enabled & b->width_enabled);
	u16 speed = BIT(__fls(a->speed_enabled & b->speed_enabled));

	link->training = false;
	events[0] |= port_link_found(a, width, speed);
	events[1] |= port_link_found(b, width, speed);
}

static void link_events(struct sib_link *link, unsigned long events[2])
{
	int i;

	for (i = 0; i < 2 && link->end[i]; i++) {
		sib_port_events(link->end[i], events[i]);
		sib_ether_update(link->end[i]);
	}
}

/* An end has changed: drop the link, or start training. */
void sib_link_update(struct sib_port *p)
{
	struct sib_link *link = p->link;
	struct sib_port *a = link->end[0], *b = link->end[1];
	unsigned long events[2] = { 0, 0 };
	unsigned long fl;
	u32 ms;

	spin_lock_irqsave(&sib_lock, fl);
	if (!link_present(a, b) || a->phys != b->phys) {
		link->training = false;
		events[0] = port_link_lost(a);
		events[1] = port_link_lost(b);
	}
	if (link_present(a, b) && a->phys == IB_PORT_PHYS_STATE_POLLING && !link->training) {
		ms = max(a->train_ms, b->train_ms);
		if (ms) {
			link->training = true;
			link->trained_at = jiffies + msecs_to_jiffies(ms);
			sib_reschedule(&link->train, ms);
		} else {
			link_train(link, events);
		}
	}
	spin_unlock_irqrestore(&sib_lock, fl);
	link_events(link, events);
}

static void train_work(struct work_struct *work)
{
	struct sib_link *link = container_of(to_delayed_work(work), struct sib_link, train);
	unsigned long events[2] = { 0, 0 };

	spin_lock_irq(&sib_lock);
	/* a pull cancels the training, a replug delays it */
	if (link->training && time_after_eq(jiffies, link->trained_at) &&
	    link_present(link->end[0], link->end[1]))
		link_train(link, events);
	spin_unlock_irq(&sib_lock);
	link_events(link, events);
}

/* Down, Polling and up again, to apply new widths, speeds or MTUs. */
static void link_retrain(struct sib_port *p)
{
	unsigned long events[2];
	unsigned long fl;

	spin_lock_irqsave(&sib_lock, fl);
	p->link->training = false;
	events[0] = port_link_lost(p->link->end[0]);
	events[1] = port_link_lost(p->link->end[1]);
	spin_unlock_irqrestore(&sib_lock, fl);
	link_events(p->link, events);
	sib_link_update(p);
}

static unsigned long port_state_reset(struct sib_port *p)
{
	if (!p || p->phys != IB_PORT_PHYS_STATE_LINK_UP)
		return 0;
	return sib_port_set_state(p, IB_PORT_INIT);
}

/*
 * Set(PortInfo):PortState of Down with no physical state resets the link's state
 * machine (IBA 7.2.7): the link stays trained, both ends restart at INIT.
 * opensm does this when it changes NeighborMTU.
 */
void sib_link_reset(struct sib_port *p)
{
	unsigned long events[2];
	unsigned long fl;

	spin_lock_irqsave(&sib_lock, fl);
	events[0] = port_state_reset(p->link->end[0]);
	events[1] = port_state_reset(p->link->end[1]);
	spin_unlock_irqrestore(&sib_lock, fl);
	link_events(p->link, events);
}

/* Knobs: the maxima of the port from now on; zero leaves a field unchanged. */
void sib_port_set_caps(struct sib_port *p, u8 width, u16 speed, u8 mtu)
{
	unsigned long fl;

	spin_lock_irqsave(&sib_lock, fl);
	p->width_supported = width ?: p->width_supported;
	p->speed_supported = speed ?: p->speed_supported;
	p->mtu_cap = mtu ?: p->mtu_cap;
	sib_link_caps(p);
	spin_unlock_irqrestore(&sib_lock, fl);
	link_retrain(p);
}

/* The link that a boot loader leaves: trained and configured, without events for a driver. */
void sib_link_warm(struct sib_link *link)
{
	struct sib_port *p, *sm = link->end[1];
	unsigned long unheard[2] = { 0, 0 };
	unsigned long fl;
	int i;

	spin_lock_irqsave(&sib_lock, fl);
	if (link_present(link->end[0], sm))
		link_train(link, unheard);
	for (i = 0; i < 2; i++) {
		p = link->end[i];
		if (!p || p->phys != IB_PORT_PHYS_STATE_LINK_UP)
			continue;
		p->lid = p == sm ? WARM_SM_LID : WARM_LID;
		p->sm_lid = WARM_SM_LID;
		p->neighbor_mtu = min(p->mtu_cap, p->peer->mtu_cap);
		p->subnet_timeout = WARM_SUBNET_TIMEOUT;
		sib_port_set_state(p, IB_PORT_ACTIVE);
	}
	spin_unlock_irqrestore(&sib_lock, fl);
}

void sib_link_init(struct sib_link *link, struct sib_port *a, struct sib_port *b)
{
	INIT_DELAYED_WORK(&link->train, train_work);
	link->end[0] = a;
	link->end[1] = b;
	a->link = link;
	a->peer = b;
	if (b) {
		b->link = link;
		b->peer = a;
	}
}

void sib_link_exit(struct sib_link *link)
{
	if (link->end[0])
		cancel_delayed_work_sync(&link->train);
}

/* Set(PortInfo):PortPhysicalState, or a knob: Polling, Sleep or Disabled. */
void sib_port_set_phys(struct sib_port *p, u8 phys)
{
	unsigned long ev, fl;

	spin_lock_irqsave(&sib_lock, fl);
	ev = port_link_lost(p);
	p->phys = phys;
	ev |= sib_port_set_state(p, IB_PORT_DOWN);
	spin_unlock_irqrestore(&sib_lock, fl);
	sib_port_events(p, ev);
	sib_link_update(p);
}
