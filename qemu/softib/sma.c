// SPDX-License-Identifier: GPL-2.0-only
/* The subnet management agent: IBA chapter 14. */
#include "softib.h"

/* MAD status, IBA 13.4.7: method and attribute do not match; invalid field */
#define SMP_BAD_METHOD_ATTR	cpu_to_be16(0x000c)
#define SMP_BAD_FIELD		cpu_to_be16(0x001c)

#define SIB_DEVICE_ID	0x50f7
#define SPEED_LEGACY	(IB_SPEED_SDR | IB_SPEED_DDR | IB_SPEED_QDR)
#define SPEED_EXT_SHIFT	4				/* IB_SPEED_FDR is the first */

/*
 * The tail of PortInfo, which struct ib_port_info does not have: bits 496..511,
 * LinkSpeedExtActive and Supported, then LinkSpeedExtEnabled.
 */
#define PI_SPEED_EXT		62
#define PI_SPEED_EXT_ENABLED	63

/*
 * IBA 14.2.4, M_Key: whether this SMP may be processed.  *show: whether a reply
 * may contain the M_Key.  A violation starts the lease, whose end disables the
 * protection, so that a new manager can take over from one that died with the key.
 */
static bool m_key_ok(struct sib_port *p, int flags, const struct ib_smp *smp, bool *show)
{
	bool match, get = smp->method == IB_MGMT_METHOD_GET;

	if (p->m_key_expires && time_after_eq(jiffies, p->m_key_expires)) {
		p->m_key_expires = 0;
		p->m_key_protect = 0;
	}
	match = (flags & IB_MAD_IGNORE_MKEY) || !p->m_key || p->m_key == smp->mkey;
	*show = match || p->m_key_protect == 0;
	if (match) {
		p->m_key_expires = 0;
		return true;
	}
	if (get && p->m_key_protect < 2)
		return true;
	if (p->m_key_violations < U16_MAX)
		p->m_key_violations++;
	if (!p->m_key_expires && p->m_key_lease)
		p->m_key_expires = (jiffies + p->m_key_lease * HZ) ?: 1;
	return false;
}

static void get_node_info(struct sib_port *p, struct ib_node_info *ni)
{
	ni->base_version = IB_MGMT_BASE_VERSION;
	ni->class_version = 1;
	ni->node_type = 1;			/* channel adapter */
	ni->num_ports = p->hca->dev->ib.phys_port_cnt;
	ni->sys_guid = sib_fabric_guid(p->hca);
	ni->node_guid = sib_fabric_guid(p->hca);
	ni->port_guid = p->guids[0];
	ni->partition_cap = cpu_to_be16(sib_num_pkeys);
	ni->device_id = cpu_to_be16(SIB_DEVICE_ID);
	ni->revision = cpu_to_be32(1);
	ni->local_port_num = p->num;
	ni->vendor_id[2] = 0x01;
}

/* arrival: the number of the port that the SMP came to. */
static void get_port_info(struct sib_port *p, u8 arrival, u8 *data, bool show_m_key)
{
	struct ib_port_info *pi = (void *)data;
	u8 ext = p->speed_active >> SPEED_EXT_SHIFT;
	/* a link at an extended speed reports the fastest non-extended speed here */
	u8 legacy = ext ? IB_SPEED_QDR : p->speed_active;

	pi->mkey = show_m_key ? p->m_key : 0;
	pi->gid_prefix = cpu_to_be64(p->gid_prefix);
	pi->lid = cpu_to_be16(p->lid);
	pi->sm_lid = cpu_to_be16(p->sm_lid);
	pi->cap_mask = cpu_to_be32(p->cap_mask);
	pi->mkey_lease_period = cpu_to_be16(p->m_key_lease);
	pi->local_port_num = arrival;
	pi->link_width_enabled = p->width_enabled;
	pi->link_width_supported = p->width_supported;
	pi->link_width_active = p->width_active;
	pi->linkspeed_portstate = (p->speed_supported & SPEED_LEGACY) << 4 |
				  (p->sweep_state ?: p->state);
	pi->portphysstate_linkdown = sib_port_phys(p) << 4 | IB_PORT_PHYS_STATE_POLLING;
	pi->mkeyprot_resv_lmc = p->m_key_protect << 6 | p->lmc;
	pi->linkspeedactive_enabled = legacy << 4 | (p->speed_enabled & SPEED_LEGACY);
	pi->neighbormtu_mastersmsl = p->neighbor_mtu << 4 | p->sm_sl;
	pi->vlcap_inittype = 1 << 4;
	pi->vl_high_limit = p->vl_high_limit;
	pi->inittypereply_mtucap = p->mtu_cap;
	pi->operationalvl_pei_peo_fpi_fpo = p->operational_vls << 4;
	pi->mkey_violations = cpu_to_be16(p->m_key_violations);
	pi->pkey_violations = cpu_to_be16(p->pkey_violations);
	pi->qkey_violations = cpu_to_be16(p->qkey_violations);
	pi->guid_cap = sib_num_gids;
	pi->clientrereg_resv_subnetto = p->subnet_timeout;
	pi->resv_resptimevalue = 8;
	data[PI_SPEED_EXT] = ext << 4 | (p->speed_supported >> SPEED_EXT_SHIFT);
	data[PI_SPEED_EXT_ENABLED] = p->speed_enabled >> SPEED_EXT_SHIFT;
}

/* LinkWidthEnabled, LinkSpeedEnabled, LinkSpeedExtEnabled: applied at the next training. */
static void set_link_enabled(struct sib_port *p, const u8 *data)
{
	const struct ib_port_info *pi = (const void *)data;
	u8 speed = pi->linkspeedactive_enabled & 0xf;
	u8 ext = data[PI_SPEED_EXT_ENABLED] & 0x1f;
	u16 legacy_bits = p->speed_enabled & SPEED_LEGACY;
	u16 ext_bits = p->speed_enabled & ~SPEED_LEGACY;

	if (pi->link_width_enabled == 0xff)
		p->width_enabled = p->width_supported;
	else if (pi->link_width_enabled & p->width_supported)
		p->width_enabled = pi->link_width_enabled & p->width_supported;
	if (speed == 0xf)
		legacy_bits = p->speed_supported & SPEED_LEGACY;
	else if (speed & p->speed_supported)
		legacy_bits = speed & p->speed_supported;
	if (ext == 0x1f)
		ext_bits = p->speed_supported & ~SPEED_LEGACY;
	else if (ext == 0x1e)			/* none of them */
		ext_bits = 0;
	else if (ext)
		ext_bits = (ext << SPEED_EXT_SHIFT) & p->speed_supported;
	p->speed_enabled = legacy_bits | ext_bits;
}

static unsigned long set_addresses(struct sib_port *p, const struct ib_port_info *pi)
{
	u16 lid = be16_to_cpu(pi->lid), sm_lid = be16_to_cpu(pi->sm_lid);
	u8 lmc = pi->mkeyprot_resv_lmc & 7, sm_sl = pi->neighbormtu_mastersmsl & 0xf;
	u64 prefix = be64_to_cpu(pi->gid_prefix);
	unsigned long ev = 0;

	if (p->gid_prefix != prefix)
		ev |= SIB_EV(GID_CHANGE);
	if (p->lid != lid || p->lmc != lmc)
		ev |= SIB_EV(LID_CHANGE);
	if (p->sm_lid != sm_lid || p->sm_sl != sm_sl)
		ev |= SIB_EV(SM_CHANGE);
	p->gid_prefix = prefix;
	p->lid = lid;
	p->lmc = lmc;
	p->sm_lid = sm_lid;
	p->sm_sl = sm_sl;
	return ev;
}

/* PortState may only change one step up: INIT, ARMED, ACTIVE.  Under sib_lock. */
static __be16 set_port_state(struct sib_port *p, u8 want, unsigned long *ev)
{
	u8 state = p->sweep_state ?: p->state;

	if (want == IB_PORT_NOP || want == IB_PORT_DOWN || p->forced_state)
		return 0;
	if (!(want == IB_PORT_ARMED && (state == IB_PORT_INIT || state == IB_PORT_ARMED)) &&
	    !(want == IB_PORT_ACTIVE && (state == IB_PORT_ARMED || state == IB_PORT_ACTIVE)))
		return SMP_BAD_FIELD;
	if (p->sweep_state)
		p->sweep_state = want;
	else
		*ev |= sib_port_set_state(p, want);
	return 0;
}

static __be16 set_port_info(struct sib_port *p, const u8 *data)
{
	const struct ib_port_info *pi = (const void *)data;
	u8 want = pi->linkspeed_portstate & 0xf, phys = pi->portphysstate_linkdown >> 4;
	u8 mtu = pi->neighbormtu_mastersmsl >> 4;
	u16 lid = be16_to_cpu(pi->lid);
	unsigned long ev, fl;
	__be16 status;

	if (!lid || lid >= SIB_LID_FIRST_MCAST)
		return SMP_BAD_FIELD;
	/* like real HCAs: a physical state alone means "down, then this state" */
	if (want == IB_PORT_NOP && phys)
		want = IB_PORT_DOWN;

	spin_lock_irqsave(&sib_lock, fl);
	p->m_key = pi->mkey;
	p->m_key_lease = be16_to_cpu(pi->mkey_lease_period);
	p->m_key_protect = pi->mkeyprot_resv_lmc >> 6;
	ev = set_addresses(p, pi);
	if (mtu >= IB_MTU_256 && mtu <= p->mtu_cap)
		p->neighbor_mtu = mtu;
	if (pi->operationalvl_pei_peo_fpi_fpo >> 4)
		p->operational_vls = pi->operationalvl_pei_peo_fpi_fpo >> 4;
	p->vl_high_limit = pi->vl_high_limit;
	p->subnet_timeout = pi->clientrereg_resv_subnetto & 0x1f;
	/* counters: a write of zero clears them */
	if (!pi->mkey_violations)
		p->m_key_violations = 0;
	if (!pi->pkey_violations)
		p->pkey_violations = 0;
	if (!pi->qkey_violations)
		p->qkey_violations = 0;
	set_link_enabled(p, data);
	sib_port_sweep(p);
	status = set_port_state(p, want, &ev);
	spin_unlock_irqrestore(&sib_lock, fl);

	if (pi->clientrereg_resv_subnetto & 0x80)
		ev |= SIB_EV(CLIENT_REREGISTER);
	sib_port_events(p, ev);
	if (want == IB_PORT_DOWN) {
		if (!phys)
			sib_link_reset(p);
		else if (phys == IB_PORT_PHYS_STATE_DISABLED || phys == IB_PORT_PHYS_STATE_SLEEP)
			sib_port_set_phys(p, phys);
		else
			sib_port_set_phys(p, IB_PORT_PHYS_STATE_POLLING);
	}
	return status;
}

/* One block of a table beside PortInfo; a Set sends the consumers an event for a change. */
static void table_block(struct sib_port *p, bool set, void *table, u8 *out, const u8 *in,
			size_t len, unsigned long event)
{
	bool changed = false;
	unsigned long fl;

	spin_lock_irqsave(&sib_lock, fl);
	if (set) {
		changed = memcmp(table, in, len);
		memcpy(table, in, len);
	}
	memcpy(out, table, len);
	spin_unlock_irqrestore(&sib_lock, fl);
	if (changed)
		sib_port_events(p, event);
}

static __be16 pkey_table(struct sib_port *p, u32 mod, bool set, u8 *out, const u8 *in)
{
	u32 first = (mod & 0xffff) * SIB_PKEY_BLOCK;
	u32 n;

	if (first >= sib_num_pkeys)
		return SMP_BAD_FIELD;
	n = min_t(u32, sib_num_pkeys - first, SIB_PKEY_BLOCK);
	table_block(p, set, &p->pkeys[first], out, in, n * sizeof(p->pkeys[0]),
		    SIB_EV(PKEY_CHANGE));
	return 0;
}

static __be16 guid_info(struct sib_port *p, u32 mod, bool set, u8 *out, const u8 *in)
{
	u32 first = mod * SIB_GUID_BLOCK, burned_in = mod ? 0 : 1;
	u32 n;

	if (mod >= SIB_MAX_GIDS / SIB_GUID_BLOCK || first >= sib_num_gids)
		return SMP_BAD_FIELD;
	n = min_t(u32, sib_num_gids - first, SIB_GUID_BLOCK);
	if (burned_in)
		memcpy(out, &p->guids[0], sizeof(p->guids[0]));
	table_block(p, set, &p->guids[first + burned_in],
		    out + burned_in * sizeof(p->guids[0]), in + burned_in * sizeof(p->guids[0]),
		    (n - burned_in) * sizeof(p->guids[0]), SIB_EV(GID_CHANGE));
	return 0;
}

/* Set one attribute and read it back.  Returns the status of the reply. */
static __be16 attribute(struct sib_port *p, const struct ib_smp *in, u8 *out, bool show_m_key)
{
	bool set = in->method == IB_MGMT_METHOD_SET;
	u32 mod = be32_to_cpu(in->attr_mod);
	u8 arrival = p->num;
	__be16 status = 0;
	unsigned long fl;

	switch (in->attr_id) {
	case IB_SMP_ATTR_NODE_DESC:
		if (set)
			return SMP_BAD_METHOD_ATTR;
		memcpy(out, p->hca->dev->ib.node_desc, IB_SMP_DATA_SIZE);
		return 0;
	case IB_SMP_ATTR_NODE_INFO:
		if (set)
			return SMP_BAD_METHOD_ATTR;
		get_node_info(p, (void *)out);
		return 0;
	case IB_SMP_ATTR_GUID_INFO:
		return guid_info(p, mod, set, out, in->data);
	case IB_SMP_ATTR_PORT_INFO:
		if (mod > p->hca->dev->ib.phys_port_cnt)
			return SMP_BAD_FIELD;
		if (mod)
			p = &p->hca->port[mod - 1];
		if (set)
			status = set_port_info(p, in->data);
		spin_lock_irqsave(&sib_lock, fl);
		get_port_info(p, arrival, out, show_m_key);
		spin_unlock_irqrestore(&sib_lock, fl);
		return status;
	case IB_SMP_ATTR_PKEY_TABLE:
		return pkey_table(p, mod, set, out, in->data);
	case IB_SMP_ATTR_SL_TO_VL_TABLE:	/* all SLs on VL0, no arbitration */
	case IB_SMP_ATTR_VL_ARB_TABLE:
	case IB_SMP_ATTR_LED_INFO:
		return 0;
	default:
		return SMP_BAD_METHOD_ATTR;
	}
}

int sib_sma(struct sib_port *p, int flags, const struct ib_smp *in, struct ib_smp *out)
{
	unsigned long fl;
	bool ok, show;

	if (in->method == IB_MGMT_METHOD_TRAP_REPRESS)
		return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_CONSUMED;
	if (in->method != IB_MGMT_METHOD_GET && in->method != IB_MGMT_METHOD_SET)
		return IB_MAD_RESULT_SUCCESS;
	if (in->attr_id == IB_SMP_ATTR_SM_INFO)
		return IB_MAD_RESULT_SUCCESS;	/* for the SM, if one runs here */

	spin_lock_irqsave(&sib_lock, fl);
	ok = m_key_ok(p, flags, in, &show);
	spin_unlock_irqrestore(&sib_lock, fl);
	if (!ok)				/* the sender gets no reply */
		return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_CONSUMED;

	memcpy(out, in, sizeof(*out));
	memset(out->data, 0, sizeof(out->data));
	out->status = attribute(p, in, out->data, show);
	out->method = IB_MGMT_METHOD_GET_RESP;
	if (in->mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE)
		out->status |= IB_SMP_DIRECTION;
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}
