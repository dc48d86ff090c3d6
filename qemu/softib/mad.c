// SPDX-License-Identifier: GPL-2.0-only
/*
 * Management datagrams: the dispatch to agents, and the filter by which a test
 * drops, delays or rejects them.
 */
#include "softib.h"

#define PATH_HOP_LIMIT	(IB_MGMT_SA_HDR + 47)	/* in a PathRecord, IBA 15.2.5.16 */

const char *const sib_mad_class_name[SIB_MAD_CLASSES] = {
	[SIB_MAD_SMP] = "smp", [SIB_MAD_SA] = "sa", [SIB_MAD_PERF] = "perf",
	[SIB_MAD_CM] = "cm", [SIB_MAD_OTHER] = "other",
};

int sib_process_mad(struct ib_device *ibdev, int flags, sib_port_nr port_num,
		    const struct ib_wc *wc, const struct ib_grh *grh,
		    const struct ib_mad *in, struct ib_mad *out,
		    size_t *out_size, u16 *out_pkey)
{
	struct sib_port *p = sib_port_of(ibdev, port_num);

	/* the kernel reads counters; what a wire brings, firmware answers by itself */
	if (!wc && sib_command(p->hca))
		return IB_MAD_RESULT_FAILURE;
	switch (in->mad_hdr.mgmt_class) {
	case IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE:
	case IB_MGMT_CLASS_SUBN_LID_ROUTED:
		return sib_sma(p, flags, (const void *)in, (void *)out);
	case IB_MGMT_CLASS_PERF_MGMT:
		return sib_pma(p, in, out);
	default:
		return IB_MAD_RESULT_SUCCESS;	/* for a consumer, if one has registered */
	}
}

static enum sib_mad_class class_of(const struct ib_mad_hdr *mad)
{
	switch (mad->mgmt_class) {
	case IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE:
	case IB_MGMT_CLASS_SUBN_LID_ROUTED:
		return SIB_MAD_SMP;
	case IB_MGMT_CLASS_SUBN_ADM:
		return SIB_MAD_SA;
	case IB_MGMT_CLASS_PERF_MGMT:
		return SIB_MAD_PERF;
	case IB_MGMT_CLASS_CM:
		return SIB_MAD_CM;
	default:
		return SIB_MAD_OTHER;
	}
}

static bool is_join(const struct ib_mad_hdr *mad)
{
	return mad->mgmt_class == IB_MGMT_CLASS_SUBN_ADM && mad->method == IB_MGMT_METHOD_SET &&
	       mad->attr_id == cpu_to_be16(IB_SA_ATTR_MC_MEMBER_REC);
}

/*
 * Apply the rules of the sending port and of the receiving port to a packet for
 * a port of the other HCA.  A packet of a node to itself is not filtered: an SM
 * whose own port is filtered still manages that port.
 */
enum sib_verdict sib_mad_filter(struct sib_packet *pkt, struct sib_port *to, u32 *delay_ms)
{
	struct sib_port *from = pkt->from;
	struct ib_mad_hdr *mad = (void *)pkt->data;
	enum sib_mad_class class;

	if (pkt->dest_qpn > 1 || pkt->len < sizeof(*mad))
		return SIB_PASS;
	if (from->fail_joins && is_join(mad)) {
		from->fail_joins--;
		return SIB_REFUSE;
	}
	class = class_of(mad);
	if (sib_take(&from->mad[class].drop) || sib_take(&to->mad[class].drop))
		return SIB_DROP;
	*delay_ms = max(from->mad[class].delay_ms, to->mad[class].delay_ms);
	return *delay_ms ? SIB_DELAY : SIB_PASS;
}

/*
 * The SM of a fabric with virtual functions behind shared LIDs requests a GRH with
 * the hop limit of its paths.  opensm does not support this.
 */
void sib_mad_path(struct sib_packet *pkt)
{
	const struct sib_port *from = pkt->from, *peer = from->peer;
	struct ib_mad_hdr *mad = (void *)pkt->data;

	if (!from->hca->grh_required && !(peer && peer->hca->grh_required))
		return;
	if (pkt->dest_qpn == 1 && pkt->len > PATH_HOP_LIMIT &&
	    mad->mgmt_class == IB_MGMT_CLASS_SUBN_ADM &&
	    mad->method == IB_MGMT_METHOD_GET_RESP &&
	    mad->attr_id == cpu_to_be16(IB_SA_ATTR_PATH_REC))
		pkt->data[PATH_HOP_LIMIT] = max_t(u8, pkt->data[PATH_HOP_LIMIT], 1);
}

/* Answer in place of the SA: return the request with a status. */
void sib_mad_refuse(struct sib_packet *pkt)
{
	struct ib_mad_hdr *mad = (void *)pkt->data;
	u16 lid = pkt->slid;

	mad->method = IB_MGMT_METHOD_GET_RESP;
	mad->status = cpu_to_be16(pkt->from->fail_joins_status);
	pkt->slid = pkt->dlid;
	pkt->dlid = lid;
	pkt->dest_qpn = pkt->src_qpn;
	pkt->src_qpn = 1;
}
