// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reliable connections, without packets: no PSN, no ACK.  A request is executed
 * as a whole, or waits.  Requests run strictly in order, which satisfies
 * IB_SEND_FENCE.
 */
#include "softib.h"

/* No route or no peer QP: the time until the timer of the transport gives up. */
#define RC_WAIT msecs_to_jiffies(1000)

static void fail_local(struct sib_qp *qp, enum ib_wc_status status)
{
	sib_qp_complete(qp, status);
	sib_qp_error(qp);
}

/* Failed at the responder: both QPs go to the error state, the requester gets the status. */
static void nak(struct sib_qp *qp, struct sib_qp *dst, enum ib_wc_status status)
{
	qp->hca->ops[SIB_OP_NAK]++;
	fail_local(qp, status);
	sib_qp_event(dst, status == IB_WC_REM_ACCESS_ERR ? IB_EVENT_QP_ACCESS_ERR :
							   IB_EVENT_QP_REQ_ERR);
	sib_qp_error(dst);
}

/* Execute a local request.  False if the request is not local. */
static bool local_request(struct sib_qp *qp, struct sib_wqe *w)
{
	bool ok;

	if (w->opcode == IB_WR_REG_MR)
		ok = sib_mr_reg(qp, w);
	else if (w->opcode == IB_WR_LOCAL_INV)
		ok = sib_mr_inv(qp, w->key);
	else
		return false;
	qp->hca->ops[w->opcode == IB_WR_REG_MR ? SIB_OP_REG_MR : SIB_OP_LOCAL_INV]++;
	if (ok)
		sib_qp_complete(qp, IB_WC_SUCCESS);
	else
		fail_local(qp, IB_WC_LOC_QP_OP_ERR);
	return true;
}

/* True while the sender may wait for a missing resource. */
static bool stall(struct sib_qp *qp, bool forever)
{
	if (!qp->stall_since)
		qp->stall_since = get_jiffies_64();
	return forever || get_jiffies_64() - qp->stall_since < RC_WAIT;
}

static void count_op(struct sib_hca *hca, const struct sib_wqe *w)
{
	switch (w->opcode) {
	case IB_WR_RDMA_READ:
		hca->ops[SIB_OP_READ]++;
		hca->ops[SIB_OP_READ_BYTES] += w->len;
		break;
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		hca->ops[SIB_OP_WRITE]++;
		hca->ops[SIB_OP_WRITE_BYTES] += w->len;
		break;
	case IB_WR_SEND_WITH_INV:
		hca->ops[SIB_OP_SEND_INV]++;
		break;
	default:
		hca->ops[SIB_OP_SEND]++;
	}
}

/* The number of packets of the path MTU in the message of a real transport. */
static void count_data(struct sib_port *from, struct sib_port *to, u32 len)
{
	u32 words = DIV_ROUND_UP(len, 4);
	u32 packets = DIV_ROUND_UP(len, ib_mtu_enum_to_int(from->neighbor_mtu)) ?: 1;

	from->counter[SIB_CNT_XMIT_DATA] += words;
	from->counter[SIB_CNT_XMIT_PACKETS] += packets;
	to->counter[SIB_CNT_RCV_DATA] += words;
	to->counter[SIB_CNT_RCV_PACKETS] += packets;
}

/* The port of the other end, if the path is open. */
static struct sib_port *route(struct sib_qp *qp)
{
	struct sib_port *from = sib_qp_port(qp);
	u16 dlid = rdma_ah_get_dlid(&qp->attr.ah_attr);

	if (sib_lid_match(from, dlid))
		return from;
	if (sib_link_up(from) && from->state == IB_PORT_ACTIVE &&
	    from->peer->state >= IB_PORT_ARMED && sib_lid_match(from->peer, dlid))
		return from->peer;
	return NULL;
}

/* The QP of the other end, if it is in a state to acknowledge. */
static struct sib_qp *responder(struct sib_qp *qp)
{
	struct sib_port *to = route(qp), *from = sib_qp_port(qp);
	struct sib_qp *dst = to ? sib_qp_find(to, qp->attr.dest_qp_num) : NULL;

	if (!dst || dst->ib.qp_type != IB_QPT_RC || dst->attr.dest_qp_num != qp->ib.qp_num)
		return NULL;
	if (dst->state != IB_QPS_RTR && dst->state != IB_QPS_RTS)
		return NULL;
	if (!sib_pkey_match(be16_to_cpu(from->pkeys[qp->attr.pkey_index]),
			    be16_to_cpu(to->pkeys[dst->attr.pkey_index]))) {
		/* once for each request, not for each try */
		if (!qp->stall_since)
			to->pkey_violations += to->pkey_violations < U16_MAX;
		return NULL;
	}
	return dst;
}

/* READ or WRITE of the other end's memory; the caller has checked the local list. */
static enum ib_wc_status remote_memory(struct sib_qp *qp, struct sib_wqe *w, struct sib_qp *dst)
{
	struct ib_sge remote = { .addr = w->raddr, .length = w->len, .lkey = w->rkey };
	struct sib_cursor there = { .s = &remote, .n = 1 };
	struct sib_cursor here = sib_ring_cursor(&qp->sq);
	bool read = w->opcode == IB_WR_RDMA_READ;
	int access = read ? IB_ACCESS_REMOTE_READ : IB_ACCESS_REMOTE_WRITE;

	if (read && !dst->attr.max_dest_rd_atomic)
		return IB_WC_REM_INV_REQ_ERR;
	if (!(dst->attr.qp_access_flags & access) || !sib_rkey_ok(dst->ib.pd, &remote, access))
		return IB_WC_REM_ACCESS_ERR;
	if (!sib_copy(read ? here : there, read ? there : here))
		return IB_WC_REM_OP_ERR;
	return IB_WC_SUCCESS;
}

/* The data and invalidation of a SEND at the responder, and the completions of both ends. */
static enum ib_wc_status deliver(struct sib_qp *qp, struct sib_wqe *w, struct sib_qp *dst,
				 struct ib_wc *wc)
{
	struct sib_ring *rq = sib_qp_rq(dst);
	struct sib_cursor d = sib_ring_cursor(rq);

	if (!sib_sg_ok(dst->ib.pd, d.s, d.n, IB_ACCESS_LOCAL_WRITE)) {
		wc->status = IB_WC_LOC_PROT_ERR;
		return IB_WC_REM_OP_ERR;
	}
	if (!sib_copy(d, sib_ring_cursor(&qp->sq))) {
		wc->status = IB_WC_LOC_LEN_ERR;
		return IB_WC_REM_INV_REQ_ERR;
	}
	if (w->opcode == IB_WR_SEND_WITH_INV) {
		if (!sib_mr_inv(dst, w->key)) {
			wc->status = IB_WC_LOC_QP_OP_ERR;
			return IB_WC_REM_ACCESS_ERR;
		}
		wc->ex.invalidate_rkey = w->key;
		wc->wc_flags = IB_WC_WITH_INVALIDATE;
	}
	return IB_WC_SUCCESS;
}

/* Execute a request that consumes a receive request of the responder. */
static enum ib_wc_status consume(struct sib_qp *qp, struct sib_wqe *w, struct sib_qp *dst)
{
	bool write = w->opcode == IB_WR_RDMA_WRITE_WITH_IMM;
	struct sib_ring *rq = sib_qp_rq(dst);
	enum ib_wc_status status = IB_WC_SUCCESS;
	struct ib_wc wc = {
		.wr_id = sib_ring_head(rq)->wr_id,
		.opcode = write ? IB_WC_RECV_RDMA_WITH_IMM : IB_WC_RECV,
		.qp = &dst->ib,
		.byte_len = w->len,
		.src_qp = qp->ib.qp_num,
		.slid = sib_qp_port(qp)->lid,
		.port_num = sib_qp_port(dst)->num,
	};

	if (write || w->opcode == IB_WR_SEND_WITH_IMM) {
		wc.ex.imm_data = w->imm;
		wc.wc_flags = IB_WC_WITH_IMM;
	}
	if (!write)
		status = deliver(qp, w, dst, &wc);
	sib_ring_pop(rq);
	sib_cq_push(to_sib(cq, dst->ib.recv_cq), &wc, w->flags & IB_SEND_SOLICITED);
	return status;
}

/* Execute one work request.  Returns false if the request must wait. */
bool sib_rc_tx(struct sib_qp *qp)
{
	struct sib_wqe *w = sib_ring_head(&qp->sq);
	bool read = w->opcode == IB_WR_RDMA_READ;
	bool write = w->opcode == IB_WR_RDMA_WRITE || w->opcode == IB_WR_RDMA_WRITE_WITH_IMM;
	bool consumes = !read && w->opcode != IB_WR_RDMA_WRITE;
	enum ib_wc_status status = IB_WC_SUCCESS;
	struct sib_port *from = sib_qp_port(qp);
	struct sib_qp *dst;

	if (local_request(qp, w))
		return true;
	if (!sib_sg_ok(qp->ib.pd, sib_ring_sge(&qp->sq), w->num_sge,
		       read ? IB_ACCESS_LOCAL_WRITE : 0))
		status = IB_WC_LOC_PROT_ERR;
	else if (read && !qp->attr.max_rd_atomic)
		status = IB_WC_LOC_QP_OP_ERR;
	if (status) {
		fail_local(qp, status);
		return true;
	}

	dst = responder(qp);
	if (!dst) {
		if (stall(qp, false))
			return false;
		fail_local(qp, IB_WC_RETRY_EXC_ERR);
		return true;
	}
	if (consumes && !sib_ring_head(sib_qp_rq(dst))) {
		if (stall(qp, qp->attr.rnr_retry == 7))
			return false;
		fail_local(qp, IB_WC_RNR_RETRY_EXC_ERR);
		return true;
	}
	if (dst->state == IB_QPS_RTR && !dst->comm_est) {
		dst->comm_est = true;
		sib_qp_event(dst, IB_EVENT_COMM_EST);
	}
	count_data(read ? sib_qp_port(dst) : from, read ? from : sib_qp_port(dst), w->len);
	count_op(qp->hca, w);

	if (read || write)
		status = remote_memory(qp, w, dst);
	if (!status && consumes)
		status = consume(qp, w, dst);
	if (status)
		nak(qp, dst, status);
	else
		sib_qp_complete(qp, IB_WC_SUCCESS);
	return true;
}
