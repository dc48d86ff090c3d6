// SPDX-License-Identifier: GPL-2.0-only
/* The performance management agent: IBA 16.1. */
#include "softib.h"

#define PERF_BAD_METHOD_ATTR	cpu_to_be16(0x000c)
#define PERF_BAD_FIELD		cpu_to_be16(0x001c)

/* Names as in sysfs, so that tests set and read the same names. */
const char *const sib_counter_name[SIB_COUNTERS] = {
	[SIB_CNT_SYMBOL_ERROR] = "symbol_error",
	[SIB_CNT_LINK_ERROR_RECOVERY] = "link_error_recovery",
	[SIB_CNT_LINK_DOWNED] = "link_downed",
	[SIB_CNT_RCV_ERRORS] = "port_rcv_errors",
	[SIB_CNT_RCV_REMPHYS_ERRORS] = "port_rcv_remote_physical_errors",
	[SIB_CNT_RCV_SWITCH_RELAY_ERRORS] = "port_rcv_switch_relay_errors",
	[SIB_CNT_XMIT_DISCARDS] = "port_xmit_discards",
	[SIB_CNT_XMIT_CONSTRAINT_ERRORS] = "port_xmit_constraint_errors",
	[SIB_CNT_RCV_CONSTRAINT_ERRORS] = "port_rcv_constraint_errors",
	[SIB_CNT_LOCAL_LINK_INTEGRITY_ERRORS] = "local_link_integrity_errors",
	[SIB_CNT_EXCESSIVE_BUFFER_OVERRUN_ERRORS] = "excessive_buffer_overrun_errors",
	[SIB_CNT_VL15_DROPPED] = "VL15_dropped",
	[SIB_CNT_XMIT_DATA] = "port_xmit_data",
	[SIB_CNT_RCV_DATA] = "port_rcv_data",
	[SIB_CNT_XMIT_PACKETS] = "port_xmit_packets",
	[SIB_CNT_RCV_PACKETS] = "port_rcv_packets",
	[SIB_CNT_XMIT_WAIT] = "port_xmit_wait",
};

/* Offset of a counter in the data of an attribute, in bits, and the bit that selects it. */
struct field {
	u16	offset;
	u8	bits;
	u16	select;
	u8	counter;
};

static const struct field port_counters[] = {	/* IBA 16.1.3.5 */
	{ 32, 16, BIT(0), SIB_CNT_SYMBOL_ERROR },
	{ 48, 8, BIT(1), SIB_CNT_LINK_ERROR_RECOVERY },
	{ 56, 8, BIT(2), SIB_CNT_LINK_DOWNED },
	{ 64, 16, BIT(3), SIB_CNT_RCV_ERRORS },
	{ 80, 16, BIT(4), SIB_CNT_RCV_REMPHYS_ERRORS },
	{ 96, 16, BIT(5), SIB_CNT_RCV_SWITCH_RELAY_ERRORS },
	{ 112, 16, BIT(6), SIB_CNT_XMIT_DISCARDS },
	{ 128, 8, BIT(7), SIB_CNT_XMIT_CONSTRAINT_ERRORS },
	{ 136, 8, BIT(8), SIB_CNT_RCV_CONSTRAINT_ERRORS },
	{ 152, 4, BIT(9), SIB_CNT_LOCAL_LINK_INTEGRITY_ERRORS },
	{ 156, 4, BIT(10), SIB_CNT_EXCESSIVE_BUFFER_OVERRUN_ERRORS },
	{ 176, 16, BIT(11), SIB_CNT_VL15_DROPPED },
	{ 192, 32, BIT(12), SIB_CNT_XMIT_DATA },
	{ 224, 32, BIT(13), SIB_CNT_RCV_DATA },
	{ 256, 32, BIT(14), SIB_CNT_XMIT_PACKETS },
	{ 288, 32, BIT(15), SIB_CNT_RCV_PACKETS },
	/* CounterSelect2, a separate field, selects PortXmitWait, at 320 */
};

static const struct field xmit_wait = { 320, 32, BIT(0), SIB_CNT_XMIT_WAIT };

static const struct field port_counters_ext[] = {	/* no unicast and multicast ones */
	{ 64, 64, BIT(0), SIB_CNT_XMIT_DATA },
	{ 128, 64, BIT(1), SIB_CNT_RCV_DATA },
	{ 192, 64, BIT(2), SIB_CNT_XMIT_PACKETS },
	{ 256, 64, BIT(3), SIB_CNT_RCV_PACKETS },
};

#define PC_PORT_SELECT		1	/* octets, in both attributes */
#define PC_COUNTER_SELECT	2
#define PC_COUNTER_SELECT2	18

/* Counters stop at their maximum. */
static void field_put(u8 *data, const struct field *f, u64 value)
{
	u64 max = f->bits == 64 ? U64_MAX : BIT_ULL(f->bits) - 1;
	int octet = f->offset / 8, i;

	value = min(value, max);
	if (f->bits < 8) {
		data[octet] |= value << (8 - f->bits - f->offset % 8);
		return;
	}
	for (i = f->bits / 8 - 1; i >= 0; i--, value >>= 8)
		data[octet + i] = value;
}

static u64 field_get(const u8 *data, const struct field *f)
{
	int octet = f->offset / 8, i;
	u64 value = 0;

	if (f->bits < 8)
		return data[octet] >> (8 - f->bits - f->offset % 8) & (BIT(f->bits) - 1);
	for (i = 0; i < f->bits / 8; i++)
		value = value << 8 | data[octet + i];
	return value;
}

static __be16 counters(struct sib_port *p, const u8 *in, u8 *out, bool set,
		       const struct field *f, int n)
{
	u16 select = in[PC_COUNTER_SELECT] << 8 | in[PC_COUNTER_SELECT + 1];
	u8 num = in[PC_PORT_SELECT];
	bool plain = f == port_counters;

	if (num > sib_num_ports && num != 0xff)
		return PERF_BAD_FIELD;
	if (num && num != 0xff)
		p = &p->hca->port[num - 1];
	out[PC_PORT_SELECT] = num;
	for (; n--; f++) {
		if (set && (select & f->select))
			p->counter[f->counter] = field_get(in, f);
		field_put(out, f, p->counter[f->counter]);
	}
	if (plain) {
		if (set && (in[PC_COUNTER_SELECT2] & xmit_wait.select))
			p->counter[SIB_CNT_XMIT_WAIT] = field_get(in, &xmit_wait);
		field_put(out, &xmit_wait, p->counter[SIB_CNT_XMIT_WAIT]);
	}
	return 0;
}

static void class_port_info(struct ib_class_port_info *c)
{
	c->base_version = IB_MGMT_BASE_VERSION;
	c->class_version = 1;
	c->capability_mask = IB_PMA_CLASS_CAP_EXT_WIDTH_NOIETF | IB_PMA_CLASS_CAP_XMIT_WAIT;
	ib_set_cpi_resp_time(c, 18);
}

int sib_pma(struct sib_port *p, const struct ib_mad *in, struct ib_mad *out)
{
	const struct ib_pma_mad *i = (const void *)in;
	struct ib_pma_mad *o = (void *)out;
	bool set = i->mad_hdr.method == IB_MGMT_METHOD_SET;
	unsigned long fl;
	__be16 status = 0;

	if (i->mad_hdr.method != IB_MGMT_METHOD_GET && !set)
		return IB_MAD_RESULT_SUCCESS;
	memcpy(o, i, sizeof(*o));
	memset(o->data, 0, sizeof(o->data));
	spin_lock_irqsave(&sib_lock, fl);
	switch (i->mad_hdr.attr_id) {
	case IB_PMA_CLASS_PORT_INFO:
		class_port_info((void *)o->data);
		break;
	case IB_PMA_PORT_COUNTERS:
		status = counters(p, i->data, o->data, set, port_counters,
				  ARRAY_SIZE(port_counters));
		break;
	case IB_PMA_PORT_COUNTERS_EXT:
		status = counters(p, i->data, o->data, set, port_counters_ext,
				  ARRAY_SIZE(port_counters_ext));
		break;
	default:
		status = PERF_BAD_METHOD_ATTR;
	}
	spin_unlock_irqrestore(&sib_lock, fl);
	o->mad_hdr.method = IB_MGMT_METHOD_GET_RESP;
	o->mad_hdr.status = status;
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}
