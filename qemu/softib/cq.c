// SPDX-License-Identifier: GPL-2.0-only
/* Completion queues. */
#include "softib.h"

static int cq_init(struct ib_cq *ibcq, const struct ib_cq_init_attr *a)
{
	struct sib_cq *cq = to_sib(cq, ibcq);

	if (ibcq->uobject)
		return -EOPNOTSUPP;
	if (a->cqe > SIB_MAX_CQE)
		return -EINVAL;
	cq->size = max(a->cqe, 1U) + 1;
	cq->wc = kvcalloc(cq->size, sizeof(*cq->wc), GFP_KERNEL);
	if (!cq->wc)
		return -ENOMEM;
	INIT_LIST_HEAD(&cq->notify);
	ibcq->cqe = a->cqe;
	return 0;
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
static int create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *a,
		     struct uverbs_attr_bundle *attrs)
#else
static int create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *a,
		     struct ib_udata *u)
#endif
{
	return cq_init(ibcq, a);
}

static int destroy_cq(struct ib_cq *ibcq, struct ib_udata *u)
{
	struct sib_cq *cq = to_sib(cq, ibcq);

	sib_wire_forget_cq(cq);
	kvfree(cq->wc);
	return 0;
}

static int poll_cq(struct ib_cq *ibcq, int n, struct ib_wc *wc)
{
	struct sib_cq *cq = to_sib(cq, ibcq);
	unsigned long fl;
	int i;

	spin_lock_irqsave(&sib_lock, fl);
	for (i = 0; i < n && cq->count; i++) {
		wc[i] = cq->wc[cq->head];
		cq->head = (cq->head + 1) % cq->size;
		cq->count--;
	}
	spin_unlock_irqrestore(&sib_lock, fl);
	return i;
}

static int req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags f)
{
	struct sib_cq *cq = to_sib(cq, ibcq);
	unsigned long fl;
	int missed;

	spin_lock_irqsave(&sib_lock, fl);
	if ((f & IB_CQ_SOLICITED_MASK) == IB_CQ_NEXT_COMP)
		cq->armed = 2;
	else if (!cq->armed)
		cq->armed = 1;
	missed = (f & IB_CQ_REPORT_MISSED_EVENTS) && cq->count;
	spin_unlock_irqrestore(&sib_lock, fl);
	return missed;
}

void sib_cq_push(struct sib_cq *cq, const struct ib_wc *wc, bool solicited)
{
	if (cq->count == cq->size) {
		pr_err_ratelimited("softib: completion queue overrun\n");
		return;
	}
	cq->wc[(cq->head + cq->count++) % cq->size] = *wc;
	if (cq->armed == 2 || (cq->armed && (solicited || wc->status))) {
		cq->armed = 0;
		sib_wire_notify(cq);
	}
}

/* Drop this QP's completions, like a reset of a kernel QP. */
void sib_cq_clean(struct sib_cq *cq, struct ib_qp *qp)
{
	u32 i, kept = 0, n = cq->count;

	for (i = 0; i < n; i++) {
		struct ib_wc *w = &cq->wc[(cq->head + i) % cq->size];

		if (w->qp != qp)
			cq->wc[(cq->head + kept++) % cq->size] = *w;
	}
	cq->count = kept;
}

const struct ib_device_ops sib_cq_ops = {
	.create_cq = create_cq,
	.destroy_cq = destroy_cq,
	.poll_cq = poll_cq,
	.req_notify_cq = req_notify_cq,
	INIT_RDMA_OBJ_SIZE(ib_cq, sib_cq, ib),
};
