// SPDX-License-Identifier: GPL-2.0-only
/* Queue pairs, shared receive queues, multicast membership, posting. */
#include "softib.h"

/* ---- shared receive queues ---- */

static int create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *a, struct ib_udata *u)
{
	if (u || a->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	if (a->attr.max_wr > SIB_MAX_WR || a->attr.max_sge > SIB_MAX_SGE)
		return -EINVAL;
	return sib_ring_init(&to_sib(srq, ibsrq)->rq, a->attr.max_wr, a->attr.max_sge);
}

static int modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *a,
		      enum ib_srq_attr_mask m, struct ib_udata *u)
{
	if (m & IB_SRQ_MAX_WR)
		return -EOPNOTSUPP;
	if (m & IB_SRQ_LIMIT)
		to_sib(srq, ibsrq)->limit = a->srq_limit;
	return 0;
}

static int query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *a)
{
	struct sib_srq *s = to_sib(srq, ibsrq);

	a->max_wr = s->rq.size;
	a->max_sge = s->rq.max_sge;
	a->srq_limit = s->limit;
	return 0;
}

static int destroy_srq(struct ib_srq *ibsrq, struct ib_udata *u)
{
	sib_ring_free(&to_sib(srq, ibsrq)->rq);
	return 0;
}

static int post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			 const struct ib_recv_wr **bad)
{
	const struct ib_recv_wr *unused;
	unsigned long fl;
	int ret;

	spin_lock_irqsave(&sib_lock, fl);
	ret = sib_ring_post_recv(&to_sib(srq, ibsrq)->rq, wr, bad ?: &unused);
	spin_unlock_irqrestore(&sib_lock, fl);
	return ret;
}

/* ---- queue pairs ---- */

static int check_init_attr(const struct ib_qp_init_attr *a)
{
	switch (a->qp_type) {
	case IB_QPT_SMI:
	case IB_QPT_GSI:
	case IB_QPT_UD:
	case IB_QPT_RC:
		break;
	default:
		return -EOPNOTSUPP;
	}
	if (a->create_flags)
		return -EOPNOTSUPP;
	if (a->cap.max_send_wr > SIB_MAX_WR || a->cap.max_recv_wr > SIB_MAX_WR ||
	    a->cap.max_send_sge > SIB_MAX_SGE || a->cap.max_recv_sge > SIB_MAX_SGE)
		return -EINVAL;
	return 0;
}

/* QP0 and QP1 exist once per port; other QPs get the next free number. */
static int assign_qpn(struct sib_qp *qp)
{
	int special = qp->ib.qp_type == IB_QPT_GSI, ret = 0;
	static u32 next;
	u32 qpn;

	if (qp->ib.qp_type != IB_QPT_SMI && qp->ib.qp_type != IB_QPT_GSI) {
		ret = xa_alloc_cyclic_irq(&sib_qps, &qpn, qp,
					  XA_LIMIT(SIB_FIRST_QPN, 0xfffffe), &next, GFP_KERNEL);
		if (ret < 0)
			return ret;
		qp->ib.qp_num = qpn;
		return 0;
	}
	qp->ib.qp_num = special;
	spin_lock_irq(&sib_lock);
	if (sib_qp_port(qp)->special[special])
		ret = -EBUSY;
	else
		sib_qp_port(qp)->special[special] = qp;
	spin_unlock_irq(&sib_lock);
	return ret;
}

static int create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *a, struct ib_udata *udata)
{
	struct sib_qp *qp = to_sib(qp, ibqp);
	int ret = udata ? -EOPNOTSUPP : check_init_attr(a);

	if (ret)
		return ret;
	INIT_LIST_HEAD(&qp->tx);
	INIT_LIST_HEAD(&qp->event);
	INIT_LIST_HEAD(&qp->mcgs);
	INIT_LIST_HEAD(&qp->all);
	qp->hca = sib_hca_of(ibqp->device);
	qp->state = IB_QPS_RESET;
	qp->sig_all = a->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->attr.port_num = a->port_num ?: 1;
	a->cap.max_inline_data = 0;
	qp->cap = a->cap;
	ret = sib_ring_init(&qp->sq, a->cap.max_send_wr, a->cap.max_send_sge);
	if (!ret && !a->srq)
		ret = sib_ring_init(&qp->rq, a->cap.max_recv_wr, a->cap.max_recv_sge);
	if (!ret)
		ret = assign_qpn(qp);
	if (ret) {
		sib_ring_free(&qp->sq);
		sib_ring_free(&qp->rq);
		return ret;
	}
	spin_lock_irq(&sib_lock);
	list_add_tail(&qp->all, &sib_all_qps);
	spin_unlock_irq(&sib_lock);
	return 0;
}

#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 15, 0)
/* ib_core allocates queue pairs, and sets these fields before the call, since Linux 5.15. */
static struct ib_qp *new_qp(struct ib_pd *pd, struct ib_qp_init_attr *a, struct ib_udata *udata)
{
	struct sib_qp *qp = kzalloc(sizeof(*qp), GFP_KERNEL);
	int ret;

	if (!qp)
		return ERR_PTR(-ENOMEM);
	qp->ib.device = pd->device;
	qp->ib.pd = pd;
	qp->ib.qp_type = a->qp_type;
	qp->ib.send_cq = a->send_cq;
	qp->ib.recv_cq = a->recv_cq;
	qp->ib.srq = a->srq;
	ret = create_qp(&qp->ib, a, udata);
	if (ret) {
		kfree(qp);
		return ERR_PTR(ret);
	}
	return &qp->ib;
}
#endif

static void qp_reset(struct sib_qp *qp)
{
	qp->state = IB_QPS_RESET;
	qp->sq.head = 0;
	qp->sq.count = 0;
	qp->rq.head = 0;
	qp->rq.count = 0;
	qp->stall_since = 0;
	qp->comm_est = false;
	qp->events = 0;
	list_del_init(&qp->event);
	sib_cq_clean(to_sib(cq, qp->ib.send_cq), &qp->ib);
	if (qp->ib.recv_cq != qp->ib.send_cq)
		sib_cq_clean(to_sib(cq, qp->ib.recv_cq), &qp->ib);
}

static void copy_attr(struct ib_qp_attr *to, const struct ib_qp_attr *a, int mask)
{
	if (mask & IB_QP_PKEY_INDEX)
		to->pkey_index = a->pkey_index;
	if (mask & IB_QP_PORT)
		to->port_num = a->port_num;
	if (mask & IB_QP_QKEY)
		to->qkey = a->qkey;
	if (mask & IB_QP_ACCESS_FLAGS)
		to->qp_access_flags = a->qp_access_flags;
	if (mask & IB_QP_PATH_MTU)
		to->path_mtu = a->path_mtu;
	if (mask & IB_QP_TIMEOUT)
		to->timeout = a->timeout;
	if (mask & IB_QP_RETRY_CNT)
		to->retry_cnt = a->retry_cnt;
	if (mask & IB_QP_RNR_RETRY)
		to->rnr_retry = a->rnr_retry;
	if (mask & IB_QP_RQ_PSN)
		to->rq_psn = a->rq_psn;
	if (mask & IB_QP_SQ_PSN)
		to->sq_psn = a->sq_psn;
	if (mask & IB_QP_MIN_RNR_TIMER)
		to->min_rnr_timer = a->min_rnr_timer;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		to->max_rd_atomic = a->max_rd_atomic;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		to->max_dest_rd_atomic = a->max_dest_rd_atomic;
	if (mask & IB_QP_DEST_QPN)
		to->dest_qp_num = a->dest_qp_num;
	if (mask & IB_QP_PATH_MIG_STATE)
		to->path_mig_state = a->path_mig_state;
	if (mask & IB_QP_AV)
		to->ah_attr = a->ah_attr;
}

static int modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *a, int mask, struct ib_udata *udata)
{
	struct sib_qp *qp = to_sib(qp, ibqp);
	enum ib_qp_state cur, next;
	unsigned long fl;
	int ret = 0;

	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;
	if ((mask & IB_QP_PKEY_INDEX) && a->pkey_index >= sib_num_pkeys)
		return -EINVAL;
	spin_lock_irqsave(&sib_lock, fl);
	cur = mask & IB_QP_CUR_STATE ? a->cur_qp_state : qp->state;
	next = mask & IB_QP_STATE ? a->qp_state : cur;
	if (!ib_modify_qp_is_ok(cur, next, ibqp->qp_type, mask)) {
		ret = -EINVAL;
		goto out;
	}
	copy_attr(&qp->attr, a, mask);
	if (!(mask & IB_QP_STATE))
		goto out;
	if (next == IB_QPS_RESET) {
		qp_reset(qp);
	} else if (next == IB_QPS_ERR) {
		sib_qp_error(qp);
	} else {
		qp->state = next;
		if (next == IB_QPS_RTS && qp->sq.count)
			sib_wire_kick(qp);
	}
out:
	spin_unlock_irqrestore(&sib_lock, fl);
	return ret;
}

static int query_qp(struct ib_qp *ibqp, struct ib_qp_attr *a, int mask,
		    struct ib_qp_init_attr *init)
{
	struct sib_qp *qp = to_sib(qp, ibqp);
	unsigned long fl;

	spin_lock_irqsave(&sib_lock, fl);
	*a = qp->attr;
	a->qp_state = qp->state;
	a->cur_qp_state = qp->state;
	a->cap = qp->cap;
	spin_unlock_irqrestore(&sib_lock, fl);
	memset(init, 0, sizeof(*init));
	init->event_handler = ibqp->event_handler;
	init->qp_context = ibqp->qp_context;
	init->send_cq = ibqp->send_cq;
	init->recv_cq = ibqp->recv_cq;
	init->srq = ibqp->srq;
	init->cap = qp->cap;
	init->qp_type = ibqp->qp_type;
	init->sq_sig_type = qp->sig_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	return 0;
}

static int destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct sib_qp *qp = to_sib(qp, ibqp);
	struct sib_mcg *m, *next;

	if (ibqp->qp_num > 1)
		xa_erase_irq(&sib_qps, ibqp->qp_num);
	spin_lock_irq(&sib_lock);
	if (ibqp->qp_num <= 1)
		sib_qp_port(qp)->special[ibqp->qp_num] = NULL;
	qp_reset(qp);
	list_del_init(&qp->all);
	list_for_each_entry_safe(m, next, &qp->mcgs, node)
		kfree(m);
	INIT_LIST_HEAD(&qp->mcgs);
	spin_unlock_irq(&sib_lock);
	sib_wire_forget_qp(qp);
	sib_ring_free(&qp->sq);
	sib_ring_free(&qp->rq);
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 15, 0)
	kfree(qp);
#endif
	return 0;
}

/* ---- posting ---- */

static int check_send_wr(struct sib_qp *qp, const struct ib_send_wr *wr)
{
	if (qp->sq.count == qp->sq.size)
		return -ENOMEM;
	if (wr->num_sge > qp->sq.max_sge || (wr->send_flags & IB_SEND_INLINE))
		return -EINVAL;
	switch (wr->opcode) {
	case IB_WR_SEND:
	case IB_WR_SEND_WITH_IMM:
		return 0;
	case IB_WR_RDMA_READ:
		if (wr->num_sge > qp->ib.device->attrs.max_sge_rd)
			return -EINVAL;
		fallthrough;
	case IB_WR_SEND_WITH_INV:
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
	case IB_WR_LOCAL_INV:
	case IB_WR_REG_MR:
		return qp->ib.qp_type == IB_QPT_RC ? 0 : -EINVAL;
	default:
		return -EINVAL;
	}
}

static void fill_wqe(struct sib_wqe *w, const struct ib_send_wr *wr)
{
	w->wr_id = wr->wr_id;
	w->opcode = wr->opcode;
	w->flags = wr->send_flags;
	switch (wr->opcode) {
	case IB_WR_SEND_WITH_INV:
	case IB_WR_LOCAL_INV:
		w->key = wr->ex.invalidate_rkey;
		break;
	case IB_WR_REG_MR:
		w->key = reg_wr(wr)->key;
		w->access = reg_wr(wr)->access;
		w->raddr = reg_wr(wr)->mr->iova;
		w->rlen = reg_wr(wr)->mr->length;
		break;
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		w->raddr = rdma_wr(wr)->remote_addr;
		w->rkey = rdma_wr(wr)->rkey;
		fallthrough;
	default:
		w->imm = wr->ex.imm_data;
	}
}

/* Copy the address handle: the owner may destroy it before the wire sends the message. */
static void fill_ud(struct sib_qp *qp, struct sib_wqe *w, const struct ib_ud_wr *ud)
{
	w->ah = to_sib(ah, ud->ah)->attr;
	w->dest_qpn = ud->remote_qpn;
	/* a Q_Key with the high bit set means the QP's own Q_Key */
	w->qkey = ud->remote_qkey & 0x80000000 ? qp->attr.qkey : ud->remote_qkey;
	w->pkey_index = qp->ib.qp_type == IB_QPT_UD ? qp->attr.pkey_index : ud->pkey_index;
}

/* Callers may have interrupts off, so this function only queues. */
static int post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		     const struct ib_send_wr **bad)
{
	struct sib_qp *qp = to_sib(qp, ibqp);
	const struct ib_send_wr *unused;
	struct sib_wqe *w;
	unsigned long fl;
	int ret = 0;

	if (!bad)
		bad = &unused;
	spin_lock_irqsave(&sib_lock, fl);
	if (qp->state != IB_QPS_RTS && qp->state != IB_QPS_ERR && qp->state != IB_QPS_SQE) {
		*bad = wr;
		ret = -EINVAL;
		goto out;
	}
	for (; wr; wr = wr->next) {
		ret = check_send_wr(qp, wr);
		if (ret) {
			*bad = wr;
			break;
		}
		w = sib_ring_tail(&qp->sq, wr->sg_list, wr->num_sge);
		fill_wqe(w, wr);
		if (ibqp->qp_type != IB_QPT_RC)
			fill_ud(qp, w, ud_wr(wr));
		qp->sq.count++;
	}
	if (qp->state == IB_QPS_ERR)
		sib_qp_error(qp);	/* flush at once: consumers drain QPs this way */
	else if (qp->sq.count)
		sib_wire_kick(qp);
out:
	spin_unlock_irqrestore(&sib_lock, fl);
	return ret;
}

static int post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		     const struct ib_recv_wr **bad)
{
	struct sib_qp *qp = to_sib(qp, ibqp);
	const struct ib_recv_wr *unused;
	unsigned long fl;
	int ret;

	if (!bad)
		bad = &unused;
	spin_lock_irqsave(&sib_lock, fl);
	if (qp->state == IB_QPS_RESET || ibqp->srq) {
		*bad = wr;
		ret = -EINVAL;
	} else {
		ret = sib_ring_post_recv(&qp->rq, wr, bad);
		if (qp->state == IB_QPS_ERR)
			sib_qp_error(qp);
	}
	spin_unlock_irqrestore(&sib_lock, fl);
	return ret;
}

/* ---- multicast ---- */

static int attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct sib_mcg *m = kzalloc(sizeof(*m), GFP_KERNEL);

	if (!m)
		return -ENOMEM;
	m->mgid = *gid;
	m->mlid = lid;
	spin_lock_irq(&sib_lock);
	list_add_tail(&m->node, &to_sib(qp, ibqp)->mcgs);
	spin_unlock_irq(&sib_lock);
	return 0;
}

static int detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct sib_mcg *m, *hit = NULL;

	spin_lock_irq(&sib_lock);
	list_for_each_entry(m, &to_sib(qp, ibqp)->mcgs, node) {
		if (!memcmp(&m->mgid, gid, sizeof(*gid)) && m->mlid == lid) {
			hit = m;
			list_del(&m->node);
			break;
		}
	}
	spin_unlock_irq(&sib_lock);
	kfree(hit);
	return hit ? 0 : -EINVAL;
}

const struct ib_device_ops sib_qp_ops = {
	.create_srq = create_srq,
	.modify_srq = modify_srq,
	.query_srq = query_srq,
	.destroy_srq = destroy_srq,
	.post_srq_recv = post_srq_recv,
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 15, 0)
	.create_qp = create_qp,
	INIT_RDMA_OBJ_SIZE(ib_qp, sib_qp, ib),
#else
	.create_qp = new_qp,
#endif
	.modify_qp = modify_qp,
	.query_qp = query_qp,
	.destroy_qp = destroy_qp,
	.post_send = post_send,
	.post_recv = post_recv,
	.attach_mcast = attach_mcast,
	.detach_mcast = detach_mcast,

	INIT_RDMA_OBJ_SIZE(ib_srq, sib_srq, ib),
};
