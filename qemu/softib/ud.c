// SPDX-License-Identifier: GPL-2.0-only
/* Unreliable datagrams: QP0, QP1 and UD; unicast and multicast. */
#include "softib.h"

#define GRH_NEXT_HDR_IBA	0x1b
#define GRH_PAYLEN_EXTRA	24	/* BTH, DETH, ICRC */

/* The payload in transit: one at a time, because everything runs under sib_lock. */
static u8 payload[SIB_UD_MAX];

static void count(struct sib_port *p, enum sib_counter data, enum sib_counter packets, u32 len)
{
	p->counter[data] += DIV_ROUND_UP(len, 4);
	p->counter[packets]++;
}

static void make_grh(struct sib_packet *pkt, const struct ib_global_route *g)
{
	const struct sib_port *from = pkt->from;

	pkt->has_grh = true;
	pkt->grh = (struct ib_grh){
		.version_tclass_flow = cpu_to_be32(6 << 28 | g->traffic_class << 20 |
						   g->flow_label),
		.paylen = cpu_to_be16(pkt->len + GRH_PAYLEN_EXTRA),
		.next_hdr = GRH_NEXT_HDR_IBA,
		.hop_limit = g->hop_limit,
		.sgid.global.subnet_prefix = cpu_to_be64(from->gid_prefix),
		.sgid.global.interface_id = from->guids[0],
		.dgid = g->dgid,
	};
}

/*
 * On hardware firmware answers the SMPs for a virtual function.  Here the kernel does,
 * which needs a GRH to answer by where the port requires one.
 */
static void smp_grh(struct sib_packet *pkt, const struct sib_port *to)
{
	struct ib_global_route g = {
		.dgid.global.subnet_prefix = cpu_to_be64(to->gid_prefix),
		.dgid.global.interface_id = to->guids[0],
	};

	make_grh(pkt, &g);
}

static enum ib_wc_status make_packet(struct sib_packet *pkt, struct sib_qp *qp, struct sib_wqe *w)
{
	struct sib_port *from = sib_qp_port(qp);
	struct ib_sge to = { .addr = (uintptr_t)payload, .length = w->len, .lkey = SIB_LOCAL_LKEY };

	if (w->len > ib_mtu_enum_to_int(from->neighbor_mtu))
		return IB_WC_LOC_LEN_ERR;
	if (!sib_sg_ok(qp->ib.pd, sib_ring_sge(&qp->sq), w->num_sge, 0))
		return IB_WC_LOC_PROT_ERR;
	if (w->pkey_index >= sib_num_pkeys)
		return IB_WC_LOC_QP_OP_ERR;
	sib_copy((struct sib_cursor){ .s = &to, .n = 1 }, sib_ring_cursor(&qp->sq));

	*pkt = (struct sib_packet){
		.from = from,
		.src_type = qp->ib.qp_type,
		.dlid = rdma_ah_get_dlid(&w->ah),
		.sl = rdma_ah_get_sl(&w->ah),
		.solicited = w->flags & IB_SEND_SOLICITED,
		.has_imm = w->opcode == IB_WR_SEND_WITH_IMM,
		.imm = w->imm,
		.pkey = be16_to_cpu(from->pkeys[w->pkey_index]),
		.dest_qpn = w->dest_qpn,
		.src_qpn = qp->ib.qp_num,
		.qkey = w->qkey,
		.len = w->len,
		.data = payload,
	};
	pkt->slid = pkt->dlid == SIB_LID_PERMISSIVE ? SIB_LID_PERMISSIVE :
		    from->lid | (rdma_ah_get_path_bits(&w->ah) & (BIT(from->lmc) - 1));
	if (rdma_ah_get_ah_flags(&w->ah) & IB_AH_GRH)
		make_grh(pkt, rdma_ah_read_grh(&w->ah));
	return IB_WC_SUCCESS;
}

/* A UD QP has one P_Key, QP1 accepts any P_Key of the table.  The index, or -1. */
static int check_pkey(struct sib_qp *qp, struct sib_port *to, u16 pkey)
{
	int i;

	if (qp->ib.qp_type == IB_QPT_UD)
		return sib_pkey_match(be16_to_cpu(to->pkeys[qp->attr.pkey_index]), pkey) ?
		       qp->attr.pkey_index : -1;
	for (i = 0; i < sib_num_pkeys; i++)
		if (sib_pkey_match(be16_to_cpu(to->pkeys[i]), pkey))
			return i;
	return -1;
}

/* A packet has reached a queue pair.  Without a buffer the packet is dropped. */
static void ud_receive(const struct sib_packet *pkt, struct sib_qp *qp)
{
	struct sib_ring *rq = sib_qp_rq(qp);
	struct sib_port *to = sib_qp_port(qp);
	struct ib_sge in[2] = {
		{ .addr = (uintptr_t)&pkt->grh, .length = sizeof(pkt->grh),
		  .lkey = SIB_LOCAL_LKEY },
		{ .addr = (uintptr_t)pkt->data, .length = pkt->len, .lkey = SIB_LOCAL_LKEY },
	};
	struct ib_wc wc = {
		.opcode = IB_WC_RECV, .qp = &qp->ib, .byte_len = pkt->len + sizeof(pkt->grh),
		.src_qp = pkt->src_qpn, .slid = pkt->slid, .sl = pkt->sl, .port_num = to->num,
	};
	struct sib_cursor packet = { .s = in, .n = 2 };
	struct sib_wqe *r;
	int pkey_index = 0;

	if (qp->ib.qp_type == IB_QPT_RC || (qp->state != IB_QPS_RTR && qp->state != IB_QPS_RTS))
		return;
	if (qp->ib.qp_type != IB_QPT_SMI) {
		pkey_index = check_pkey(qp, to, pkt->pkey);
		if (pkey_index < 0) {
			to->pkey_violations += to->pkey_violations < U16_MAX;
			return;
		}
		if (pkt->qkey != qp->attr.qkey) {
			to->qkey_violations += to->qkey_violations < U16_MAX;
			return;
		}
	}
	r = sib_ring_head(rq);
	if (!r) {
		if (qp->ib.qp_type == IB_QPT_SMI)
			to->counter[SIB_CNT_VL15_DROPPED]++;
		return;
	}
	wc.wr_id = r->wr_id;
	wc.pkey_index = pkey_index;
	if (pkt->has_imm) {
		wc.ex.imm_data = pkt->imm;
		wc.wc_flags |= IB_WC_WITH_IMM;
	}
	if (pkt->has_grh)
		wc.wc_flags |= IB_WC_GRH;
	if (!sib_sg_ok(qp->ib.pd, sib_ring_sge(rq), r->num_sge, IB_ACCESS_LOCAL_WRITE))
		wc.status = IB_WC_LOC_PROT_ERR;
	else if (!sib_copy(sib_ring_cursor(rq), packet))
		wc.status = IB_WC_LOC_LEN_ERR;
	sib_ring_pop(rq);
	count(to, SIB_CNT_RCV_DATA, SIB_CNT_RCV_PACKETS, pkt->len);
	sib_cq_push(to_sib(cq, qp->ib.recv_cq), &wc, pkt->solicited);
}

/* Every member of the group at this port except the sender. */
static void mcast_receive(const struct sib_packet *pkt, struct sib_port *to)
{
	struct sib_qp *qp;
	struct sib_mcg *m;

	list_for_each_entry(qp, &sib_all_qps, all) {
		if (sib_qp_port(qp) != to)
			continue;
		if (to == pkt->from && qp->ib.qp_num == pkt->src_qpn)
			continue;
		list_for_each_entry(m, &qp->mcgs, node) {
			if (m->mlid == pkt->dlid &&
			    !memcmp(&m->mgid, &pkt->grh.dgid, sizeof(m->mgid))) {
				ud_receive(pkt, qp);
				break;
			}
		}
	}
}

/* A packet has reached a port. */
void sib_ud_arrive(const struct sib_packet *pkt, struct sib_port *to)
{
	struct sib_qp *qp = NULL;

	if (pkt->dlid == SIB_LID_PERMISSIVE)
		qp = pkt->src_type == IB_QPT_SMI ? to->special[0] : NULL;
	else if (pkt->dlid >= SIB_LID_FIRST_MCAST)
		mcast_receive(pkt, to);
	else if (sib_lid_match(to, pkt->dlid))
		qp = sib_qp_find(to, pkt->dest_qpn);
	if (qp)
		ud_receive(pkt, qp);
}

/* Subnet management passes as soon as the link is up, other traffic once the SM allows it. */
static bool wire_open(const struct sib_packet *pkt)
{
	const struct sib_port *from = pkt->from;

	return sib_link_up(from) &&
	       (pkt->src_type == IB_QPT_SMI ||
		(from->state == IB_PORT_ACTIVE && from->peer->state >= IB_PORT_ARMED));
}

static void over_the_wire(struct sib_packet *pkt)
{
	struct sib_port *from = pkt->from, *to = from->peer;
	u32 delay_ms = 0;

	if (!wire_open(pkt))
		return;
	/* behind a LID that it shares, only the GID tells a virtual function's packets */
	if (to->hca->grh_required && !pkt->has_grh) {
		if (pkt->src_type != IB_QPT_SMI)
			return;
		smp_grh(pkt, to);
	}
	if ((from->drop_above && pkt->len > from->drop_above) ||
	    (to->drop_above && pkt->len > to->drop_above))
		return;
	switch (sib_mad_filter(pkt, to, &delay_ms)) {
	case SIB_PASS:
		sib_ud_arrive(pkt, to);
		break;
	case SIB_DELAY:
		sib_wire_delay(pkt, delay_ms);
		break;
	case SIB_REFUSE:
		sib_mad_refuse(pkt);
		sib_ud_arrive(pkt, from);
		break;
	case SIB_DROP:
		break;
	}
}

void sib_ud_tx(struct sib_qp *qp)
{
	struct sib_wqe *w = sib_ring_head(&qp->sq);
	struct sib_port *from = sib_qp_port(qp);
	enum ib_wc_status status;
	struct sib_packet pkt;
	bool mcast, self;

	status = make_packet(&pkt, qp, w);
	if (status) {
		sib_qp_complete(qp, status);
		return;
	}
	count(from, SIB_CNT_XMIT_DATA, SIB_CNT_XMIT_PACKETS, pkt.len);
	sib_mad_path(&pkt);
	mcast = pkt.dlid >= SIB_LID_FIRST_MCAST && pkt.dlid != SIB_LID_PERMISSIVE;
	self = sib_lid_match(from, pkt.dlid);
	if (self || (mcast && from->state == IB_PORT_ACTIVE))
		sib_ud_arrive(&pkt, from);
	if (!self)
		over_the_wire(&pkt);
	sib_qp_complete(qp, IB_WC_SUCCESS);
}
