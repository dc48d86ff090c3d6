// SPDX-License-Identifier: GPL-2.0-only
/*
 * The wire.  One work item moves messages between send queues and receive
 * queues, and makes every callback into consumers (completion handlers, QP
 * events), so no callback runs under sib_lock or in the poster's context.
 */
#include "softib.h"

#define ROUNDS	64	/* then requeue, so that flush_work() ends under load */
#define BUDGET	16	/* messages, or units of 16 KiB, with interrupts off */

static LIST_HEAD(tx_qps);
static LIST_HEAD(event_qps);
static LIST_HEAD(notify_cqs);
static LIST_HEAD(late_packets);
static struct workqueue_struct *wq;

static void wire_work(struct work_struct *w);
static void retry_work(struct work_struct *w);
static void late_work(struct work_struct *w);
static DECLARE_WORK(wire, wire_work);
static DECLARE_DELAYED_WORK(retry, retry_work);
static DECLARE_DELAYED_WORK(late, late_work);

int sib_wire_init(void)
{
	wq = alloc_workqueue("softib", WQ_UNBOUND | WQ_MEM_RECLAIM | WQ_HIGHPRI, 1);
	return wq ? 0 : -ENOMEM;
}

void sib_wire_exit(void)
{
	struct sib_packet *pkt, *next;

	cancel_delayed_work_sync(&late);
	cancel_delayed_work_sync(&retry);
	destroy_workqueue(wq);
	list_for_each_entry_safe(pkt, next, &late_packets, node)
		kfree(pkt);
	INIT_LIST_HEAD(&late_packets);
}

void sib_wire_kick(struct sib_qp *qp)
{
	if (list_empty(&qp->tx))
		list_add_tail(&qp->tx, &tx_qps);
	queue_work(wq, &wire);
}

void sib_wire_notify(struct sib_cq *cq)
{
	if (list_empty(&cq->notify))
		list_add_tail(&cq->notify, &notify_cqs);
	queue_work(wq, &wire);
}

/* ---- queue pairs as the wire sees them ---- */

bool sib_lid_match(const struct sib_port *p, u16 lid)
{
	return p->lid && (lid & ~(BIT(p->lmc) - 1)) == p->lid;
}

/* IBA 10.9: same key, and at least one end a full member. */
bool sib_pkey_match(u16 a, u16 b)
{
	return (a & 0x7fff) && (a & 0x7fff) == (b & 0x7fff) && ((a | b) & 0x8000);
}

struct sib_qp *sib_qp_find(struct sib_port *p, u32 qpn)
{
	struct sib_qp *qp;

	if (qpn <= 1)
		return p->special[qpn];
	qp = xa_load(&sib_qps, qpn);
	return qp && sib_qp_port(qp) == p ? qp : NULL;
}

static enum ib_wc_opcode wc_opcode(enum ib_wr_opcode op)
{
	switch (op) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return IB_WC_RDMA_WRITE;
	case IB_WR_RDMA_READ:
		return IB_WC_RDMA_READ;
	case IB_WR_LOCAL_INV:
		return IB_WC_LOCAL_INV;
	case IB_WR_REG_MR:
		return IB_WC_REG_MR;
	default:
		return IB_WC_SEND;
	}
}

/* The oldest send request is done. */
void sib_qp_complete(struct sib_qp *qp, enum ib_wc_status status)
{
	struct sib_wqe *w = sib_ring_head(&qp->sq);
	struct ib_wc wc = {
		.wr_id = w->wr_id, .status = status, .opcode = wc_opcode(w->opcode),
		.qp = &qp->ib, .byte_len = w->len,
	};
	bool signal = qp->sig_all || (w->flags & IB_SEND_SIGNALED) || status;

	sib_ring_pop(&qp->sq);
	qp->stall_since = 0;
	if (signal)
		sib_cq_push(to_sib(cq, qp->ib.send_cq), &wc, false);
}

static void flush_recvs(struct sib_qp *qp)
{
	while (qp->rq.count) {
		struct ib_wc wc = {
			.wr_id = sib_ring_head(&qp->rq)->wr_id, .qp = &qp->ib,
			.status = IB_WC_WR_FLUSH_ERR, .opcode = IB_WC_RECV,
		};

		sib_ring_pop(&qp->rq);
		sib_cq_push(to_sib(cq, qp->ib.recv_cq), &wc, true);
	}
}

void sib_qp_event(struct sib_qp *qp, enum ib_event_type ev)
{
	qp->events |= BIT(ev);
	if (list_empty(&qp->event))
		list_add_tail(&qp->event, &event_qps);
	queue_work(wq, &wire);
}

/* Enter the error state and flush all posted requests, and those posted later in this state. */
void sib_qp_error(struct sib_qp *qp)
{
	bool first = qp->state != IB_QPS_ERR;

	qp->state = IB_QPS_ERR;
	while (qp->sq.count)
		sib_qp_complete(qp, IB_WC_WR_FLUSH_ERR);
	if (!qp->ib.srq)
		flush_recvs(qp);
	else if (first)
		sib_qp_event(qp, IB_EVENT_QP_LAST_WQE_REACHED);
}

/* ---- packets that arrive late ---- */

void sib_wire_delay(const struct sib_packet *pkt, u32 ms)
{
	struct sib_packet *copy = kmalloc(sizeof(*copy) + pkt->len, GFP_ATOMIC);

	if (!copy)
		return;			/* a datagram may be lost */
	*copy = *pkt;
	copy->data = (u8 *)(copy + 1);
	memcpy(copy->data, pkt->data, pkt->len);
	copy->due = jiffies + msecs_to_jiffies(ms);
	list_add_tail(&copy->node, &late_packets);
	/* also if it waits for a packet that is due later */
	mod_delayed_work(wq, &late, 0);
}

/* Delays differ from packet to packet, so the list is not in order of arrival. */
static void late_work(struct work_struct *unused)
{
	struct sib_packet *pkt, *n;
	unsigned long next = 0, fl;
	bool more = false;

	spin_lock_irqsave(&sib_lock, fl);
	list_for_each_entry_safe(pkt, n, &late_packets, node) {
		if (time_after(pkt->due, jiffies)) {
			if (!more || time_before(pkt->due, next))
				next = pkt->due;
			more = true;
			continue;
		}
		list_del(&pkt->node);
		/* the cable may have been pulled since then */
		if (sib_link_up(pkt->from))
			sib_ud_arrive(pkt, pkt->from->peer);
		kfree(pkt);
	}
	if (more)
		queue_delayed_work(wq, &late, max_t(long, next - jiffies, 1));
	spin_unlock_irqrestore(&sib_lock, fl);
}

/* ---- the worker ---- */

static void retry_work(struct work_struct *w)
{
	queue_work(wq, &wire);
}

static void serve_qp(struct sib_qp *qp, struct list_head *stalled)
{
	int budget = BUDGET;

	list_del_init(&qp->tx);
	while (budget > 0 && qp->sq.count && qp->state == IB_QPS_RTS) {
		budget -= 1 + (sib_ring_head(&qp->sq)->len >> 14);
		if (qp->ib.qp_type != IB_QPT_RC) {
			sib_ud_tx(qp);
		} else if (!sib_rc_tx(qp)) {
			list_add_tail(&qp->tx, stalled);
			return;
		}
	}
	if (qp->sq.count && qp->state == IB_QPS_RTS && list_empty(&qp->tx))
		list_add_tail(&qp->tx, &tx_qps);
}

/* Drops and retakes sib_lock around each callback. */
static void notify(unsigned long *fl)
	__must_hold(&sib_lock)
{
	struct sib_cq *cq;
	struct sib_qp *qp;

	while ((cq = list_first_entry_or_null(&notify_cqs, struct sib_cq, notify))) {
		list_del_init(&cq->notify);
		spin_unlock_irqrestore(&sib_lock, *fl);
		cq->ib.comp_handler(&cq->ib, cq->ib.cq_context);
		spin_lock_irqsave(&sib_lock, *fl);
	}
	while ((qp = list_first_entry_or_null(&event_qps, struct sib_qp, event))) {
		struct ib_event ev = {
			.device = qp->ib.device, .element.qp = &qp->ib,
			.event = __ffs(qp->events),
		};

		__clear_bit(ev.event, &qp->events);
		if (!qp->events)
			list_del_init(&qp->event);
		spin_unlock_irqrestore(&sib_lock, *fl);
		if (qp->ib.event_handler)
			qp->ib.event_handler(&ev, qp->ib.qp_context);
		spin_lock_irqsave(&sib_lock, *fl);
	}
}

static void wire_work(struct work_struct *unused)
{
	LIST_HEAD(stalled);
	int rounds = ROUNDS;
	struct sib_qp *qp;
	unsigned long fl;
	bool more;

	do {
		/* bottom halves off: NAPI raised by the handlers runs on exit */
		local_bh_disable();
		spin_lock_irqsave(&sib_lock, fl);
		qp = list_first_entry_or_null(&tx_qps, struct sib_qp, tx);
		if (qp)
			serve_qp(qp, &stalled);
		notify(&fl);
		more = !list_empty(&tx_qps);
		if (!more && !list_empty(&stalled)) {
			list_splice_init(&stalled, &tx_qps);
			mod_delayed_work(wq, &retry, 1);
		}
		spin_unlock_irqrestore(&sib_lock, fl);
		local_bh_enable();
		cond_resched();
	} while (more && --rounds);
	if (!more)
		return;
	spin_lock_irqsave(&sib_lock, fl);
	list_splice(&stalled, &tx_qps);
	spin_unlock_irqrestore(&sib_lock, fl);
	queue_work(wq, &wire);
}

/* The object is destroyed: the worker must not find it, and must not be using it. */
void sib_wire_forget_cq(struct sib_cq *cq)
{
	spin_lock_irq(&sib_lock);
	cq->armed = 0;
	list_del_init(&cq->notify);
	spin_unlock_irq(&sib_lock);
	flush_work(&wire);
}

void sib_wire_forget_qp(struct sib_qp *qp)
{
	spin_lock_irq(&sib_lock);
	list_del_init(&qp->tx);
	list_del_init(&qp->event);
	spin_unlock_irq(&sib_lock);
	flush_work(&wire);
}
