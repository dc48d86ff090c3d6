// SPDX-License-Identifier: GPL-2.0-only
/* Ports: their state, and the port verbs. */
#include "softib.h"

#define PORT_16	0x1000	/* its GUID, from the HCA's */

static char *unplugged = "polling";
module_param(unplugged, charp, 0444);
MODULE_PARM_DESC(unplugged, "physical state of a port without a cable: polling, disabled (mlx5)");
static char *force_state[SIB_MAX_HCAS] = { "none" };
static unsigned int force_state_count;
module_param_array(force_state, charp, &force_state_count, 0444);
MODULE_PARM_DESC(force_state, "state that the ports of each HCA are held in from load on");
static unsigned int sweep_ms[SIB_MAX_HCAS], sweep_ms_count;
module_param_array(sweep_ms, uint, &sweep_ms_count, 0444);
MODULE_PARM_DESC(sweep_ms, "how long the SM takes from the LID to the port state, per HCA");

static u64 port_guid[SIB_MAX_HCAS];
static unsigned int port_guid_count;
module_param_array(port_guid, ullong, &port_guid_count, 0444);
MODULE_PARM_DESC(port_guid, "GUID of port 1 of each HCA; those that follow have their own");

static bool empty_is_disabled;

static void sweep_work(struct work_struct *work);

static int port_params(struct sib_port *p)
{
	p->sweep_ms = sweep_ms[sib_list_index(p->hca, sweep_ms_count)];
	empty_is_disabled = !strcmp(unplugged, "disabled");
	if (!empty_is_disabled && strcmp(unplugged, "polling"))
		return -EINVAL;
	return sib_parse_state(force_state[sib_list_index(p->hca, force_state_count)],
			       &p->forced_state);
}

int sib_port_init(struct sib_port *p, struct sib_hca *hca, int num)
{
	p->hca = hca;
	INIT_DELAYED_WORK(&p->sweep, sweep_work);
	p->num = num;
	/* the 16th would be the next HCA's */
	p->guids[0] = cpu_to_be64(be64_to_cpu(hca->guid) + (num < 16 ? num : PORT_16));
	if (num == 1 && hca->index < port_guid_count)
		p->guids[0] = cpu_to_be64(port_guid[hca->index]);
	/* the status of opensm for a rejected join: ERR_REQ_INVALID */
	p->fail_joins_status = 0x0200;
	sib_events_init(p);
	return port_params(p);
}

/* When neither a device nor a knob is left. */
void sib_port_exit(struct sib_port *p)
{
	cancel_delayed_work_sync(&p->sweep);
	sib_events_exit(p);
}

/* The state after power-on: the volatile memory of the firmware is reset. */
void sib_port_reset(struct sib_port *p)
{
	unsigned long fl;

	spin_lock_irqsave(&sib_lock, fl);
	p->state = p->forced_state ?: IB_PORT_DOWN;
	p->phys = IB_PORT_PHYS_STATE_POLLING;
	p->swept = false;
	p->sweep_state = IB_PORT_NOP;
	p->lid = 0;
	p->sm_lid = 0;
	p->lmc = 0;
	p->sm_sl = 0;
	p->gid_prefix = 0xfe80000000000000ULL;
	p->cap_mask = IB_PORT_CLIENT_REG_SUP | IB_PORT_SYS_IMAGE_GUID_SUP | IB_PORT_SL_MAP_SUP;
	p->neighbor_mtu = IB_MTU_2048;
	p->operational_vls = 1;
	p->vl_high_limit = 0;
	p->subnet_timeout = 0;
	sib_link_caps(p);
	p->m_key = 0;
	p->m_key_lease = 0;
	p->m_key_protect = 0;
	p->m_key_violations = 0;
	p->pkey_violations = 0;
	p->qkey_violations = 0;
	p->m_key_expires = 0;
	memset(&p->guids[1], 0, sizeof(p->guids) - sizeof(p->guids[0]));
	memset(p->pkeys, 0, sizeof(p->pkeys));
	p->pkeys[0] = cpu_to_be16(0xffff);
	memset(p->counter, 0, sizeof(p->counter));
	spin_unlock_irqrestore(&sib_lock, fl);
}

/* ---- port state; under sib_lock ---- */

/* Set the requested state, unless a knob forces another one, and queue the events. */
unsigned long sib_port_set_state(struct sib_port *p, u8 state)
{
	bool was = p->state == IB_PORT_ACTIVE, is;

	if (state <= IB_PORT_INIT) {
		p->swept = false;
		p->sweep_state = IB_PORT_NOP;
	}
	p->state = p->forced_state ?: state;
	is = p->state == IB_PORT_ACTIVE;
	if (is == was)
		return 0;
	return is ? SIB_EV(PORT_ACTIVE) : SIB_EV(PORT_ERR);
}

/*
 * The SM of a big fabric gives a port its LID long before its state: from its first
 * Set(PortInfo) on the state that it sets counts sweep_ms later.
 */
void sib_port_sweep(struct sib_port *p)
{
	if (!p->sweep_ms || p->swept || p->state != IB_PORT_INIT || p->forced_state)
		return;
	p->swept = true;
	p->sweep_state = IB_PORT_INIT;
	p->sweep_ends = jiffies + msecs_to_jiffies(p->sweep_ms);
	sib_reschedule(&p->sweep, p->sweep_ms);
}

static void sweep_work(struct work_struct *work)
{
	struct sib_port *p = container_of(to_delayed_work(work), struct sib_port, sweep);
	unsigned long ev = 0;
	u8 state;

	spin_lock_irq(&sib_lock);
	/* a link that was lost since then has moved it */
	if (time_after_eq(jiffies, p->sweep_ends)) {
		state = p->sweep_state;
		p->sweep_state = IB_PORT_NOP;
		if (state > IB_PORT_INIT)
			ev = sib_port_set_state(p, state);
	}
	spin_unlock_irq(&sib_lock);
	sib_port_events(p, ev);
}

static bool port_is_empty(const struct sib_port *p)
{
	return !p->peer || !p->cable || !p->peer->cable;
}

/* The physical port state that the port reports. */
u8 sib_port_phys(const struct sib_port *p)
{
	if (empty_is_disabled && port_is_empty(p))
		return IB_PORT_PHYS_STATE_DISABLED;
	return p->phys;
}

/* Like a hypervisor that gives a virtual function its GUID. */
void sib_port_set_guid(struct sib_port *p, __be64 guid)
{
	unsigned long fl;

	spin_lock_irqsave(&sib_lock, fl);
	p->guids[0] = guid;
	spin_unlock_irqrestore(&sib_lock, fl);
	sib_port_events(p, SIB_EV(GID_CHANGE));
}

/* IB_PORT_NOP releases the port: its state follows the link, and the SM may change it. */
void sib_port_force(struct sib_port *p, u8 state)
{
	unsigned long ev, fl;

	spin_lock_irqsave(&sib_lock, fl);
	p->forced_state = state;
	ev = sib_port_set_state(p, p->phys == IB_PORT_PHYS_STATE_LINK_UP ? IB_PORT_INIT :
									   IB_PORT_DOWN);
	spin_unlock_irqrestore(&sib_lock, fl);
	sib_port_events(p, ev);
	sib_ether_update(p);
}

/* Without power every request of the HCA fails, as on a removed card. */
void sib_port_power(struct sib_port *p, bool on)
{
	struct sib_qp *qp;
	unsigned long fl;

	spin_lock_irqsave(&sib_lock, fl);
	p->hca->powered = on;
	if (!on)
		list_for_each_entry(qp, &sib_all_qps, all)
			if (qp->hca == p->hca && qp->state != IB_QPS_RESET)
				sib_qp_error(qp);
	spin_unlock_irqrestore(&sib_lock, fl);
	sib_link_update(p);
}

/* ---- verbs ---- */

static int query_port(struct ib_device *ibdev, sib_port_nr n, struct ib_port_attr *a)
{
	struct sib_port *p = sib_port_of(ibdev, n);
	int ret = sib_command(p->hca);
	unsigned long fl;

	if (ret)
		return ret;
	spin_lock_irqsave(&sib_lock, fl);
	a->subnet_prefix = p->gid_prefix;
	a->state = p->state;
	a->phys_state = sib_port_phys(p);
	a->max_mtu = p->mtu_cap;
	a->active_mtu = p->neighbor_mtu;
	a->phys_mtu = ib_mtu_enum_to_int(p->neighbor_mtu);
	a->gid_tbl_len = sib_num_gids;
	a->pkey_tbl_len = sib_num_pkeys;
	a->port_cap_flags = p->cap_mask;
	a->max_msg_sz = 1U << 31;
	a->bad_pkey_cntr = p->pkey_violations;
	a->qkey_viol_cntr = p->qkey_violations;
	a->sm_lid = p->sm_lid;
	a->sm_sl = p->sm_sl;
	/* and mlx5 has no LID then */
	a->lid = empty_is_disabled && port_is_empty(p) ? SIB_LID_PERMISSIVE : p->lid;
	a->lmc = p->lmc;
	a->max_vl_num = 1;
	a->subnet_timeout = p->subnet_timeout;
	a->active_width = p->width_active;
	a->active_speed = p->speed_active;
	spin_unlock_irqrestore(&sib_lock, fl);
	return 0;
}

static int modify_port(struct ib_device *ibdev, sib_port_nr n, int mask, struct ib_port_modify *m)
{
	struct sib_port *p = sib_port_of(ibdev, n);
	int ret = sib_command(p->hca);
	unsigned long fl;

	if (ret)
		return ret;
	spin_lock_irqsave(&sib_lock, fl);
	p->cap_mask = (p->cap_mask | m->set_port_cap_mask) & ~m->clr_port_cap_mask;
	if (mask & IB_PORT_RESET_QKEY_CNTR)
		p->qkey_violations = 0;
	spin_unlock_irqrestore(&sib_lock, fl);
	return 0;
}

static int get_port_immutable(struct ib_device *ibdev, sib_port_nr n, struct ib_port_immutable *im)
{
	im->pkey_tbl_len = sib_num_pkeys;
	im->gid_tbl_len = sib_num_gids;
	im->core_cap_flags = RDMA_CORE_PORT_IBA_IB;
	if (sib_hca_of(ibdev)->grh_required)
		im->core_cap_flags |= RDMA_CORE_CAP_IB_GRH_REQUIRED;
	im->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

static enum rdma_link_layer get_link_layer(struct ib_device *ibdev, sib_port_nr n)
{
	return IB_LINK_LAYER_INFINIBAND;
}

static int query_gid(struct ib_device *ibdev, sib_port_nr n, int i, union ib_gid *gid)
{
	struct sib_port *p = sib_port_of(ibdev, n);
	int ret = sib_command(p->hca);

	if (ret || i >= sib_num_gids)
		return ret ?: -EINVAL;
	gid->global.subnet_prefix = cpu_to_be64(READ_ONCE(p->gid_prefix));
	gid->global.interface_id = READ_ONCE(p->guids[i]);
	return 0;
}

static int query_pkey(struct ib_device *ibdev, sib_port_nr n, u16 i, u16 *pkey)
{
	struct sib_port *p = sib_port_of(ibdev, n);
	int ret = sib_command(p->hca);

	if (ret || i >= sib_num_pkeys)
		return ret ?: -EINVAL;
	*pkey = be16_to_cpu(READ_ONCE(p->pkeys[i]));
	return 0;
}

const struct ib_device_ops sib_port_ops = {
	.query_port = query_port,
	.modify_port = modify_port,
	.get_port_immutable = get_port_immutable,
	.get_link_layer = get_link_layer,
	.query_gid = query_gid,
	.query_pkey = query_pkey,
};
