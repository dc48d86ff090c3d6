// SPDX-License-Identifier: GPL-2.0-only
/* Work queues: rings of requests with their scatter lists. */
#include "softib.h"

int sib_ring_init(struct sib_ring *r, u32 n, u32 sge)
{
	r->size = max(n, 1U);
	r->max_sge = max(sge, 1U);
	r->head = 0;
	r->count = 0;
	r->wqe = kvcalloc(r->size, sizeof(*r->wqe), GFP_KERNEL);
	r->sge = kvcalloc((size_t)r->size * r->max_sge, sizeof(*r->sge), GFP_KERNEL);
	if (r->wqe && r->sge)
		return 0;
	sib_ring_free(r);
	return -ENOMEM;
}

void sib_ring_free(struct sib_ring *r)
{
	kvfree(r->wqe);
	kvfree(r->sge);
	r->wqe = NULL;
	r->sge = NULL;
}

/* The next free request, with its scatter list; the caller updates the count. */
struct sib_wqe *sib_ring_tail(struct sib_ring *r, const struct ib_sge *sg, int n)
{
	u32 i = (r->head + r->count) % r->size, len = 0;
	struct sib_wqe *w = &r->wqe[i];
	int k;

	for (k = 0; k < n; k++) {
		r->sge[i * r->max_sge + k] = sg[k];
		len += sg[k].length;
	}
	w->num_sge = n;
	w->len = len;
	return w;
}

int sib_ring_post_recv(struct sib_ring *r, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad)
{
	struct sib_wqe *w;

	for (; wr; wr = wr->next) {
		if (wr->num_sge > r->max_sge) {
			*bad = wr;
			return -EINVAL;
		}
		if (r->count == r->size) {
			*bad = wr;
			return -ENOMEM;
		}
		w = sib_ring_tail(r, wr->sg_list, wr->num_sge);
		w->wr_id = wr->wr_id;
		r->count++;
	}
	return 0;
}
