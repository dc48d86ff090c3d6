// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory regions, and every copy of message data.  SGE addresses are kernel
 * virtual addresses when the key is the device's local key or that of a DMA
 * region; with the key of a fast-registered region they count from its iova.
 * Everything except the verbs runs under sib_lock.
 */
#include "softib.h"

static int mr_new(struct sib_mr **res, struct ib_pd *pd, u32 pages)
{
	static u32 next;
	struct sib_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	u32 i;
	int ret;

	if (!mr)
		return -ENOMEM;
	mr->pd = pd;
	mr->max_pages = pages;
	if (pages) {
		mr->pages = kvcalloc(pages, sizeof(*mr->pages), GFP_KERNEL);
		if (!mr->pages) {
			ret = -ENOMEM;
			goto err;
		}
	}
	ret = xa_alloc_cyclic_irq(&sib_mrs, &i, mr, XA_LIMIT(SIB_FIRST_MR, 0xfffffe),
				  &next, GFP_KERNEL);
	if (ret < 0)
		goto err;
	mr->key = i << 8;
	mr->ib.lkey = mr->key;
	mr->ib.rkey = mr->key;
	*res = mr;
	return 0;
err:
	kvfree(mr->pages);
	kfree(mr);
	return ret;
}

static struct ib_mr *get_dma_mr(struct ib_pd *pd, int access)
{
	struct sib_mr *mr;
	int ret = mr_new(&mr, pd, 0);

	if (ret)
		return ERR_PTR(ret);
	spin_lock_irq(&sib_lock);
	mr->access = access;
	mr->length = U64_MAX;
	mr->dma = true;
	mr->valid = true;
	spin_unlock_irq(&sib_lock);
	return &mr->ib;
}

static struct ib_mr *alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 pages)
{
	struct sib_mr *mr;
	int ret;

	if (type != IB_MR_TYPE_MEM_REG)
		return ERR_PTR(-EOPNOTSUPP);
	if (!pages || pages > SIB_MAX_MR_PAGES)
		return ERR_PTR(-EINVAL);
	ret = mr_new(&mr, pd, pages);
	return ret ? ERR_PTR(ret) : &mr->ib;
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
static struct ib_mr *reg_user_mr(struct ib_pd *pd, u64 start, u64 len, u64 va,
				 int acc, struct ib_dmah *dmah, struct ib_udata *u)
#else
static struct ib_mr *reg_user_mr(struct ib_pd *pd, u64 start, u64 len, u64 va,
				 int acc, struct ib_udata *u)
#endif
{
	return ERR_PTR(-EOPNOTSUPP);
}

static int dereg_mr(struct ib_mr *ibmr, struct ib_udata *u)
{
	struct sib_mr *mr = to_sib(mr, ibmr);

	xa_erase_irq(&sib_mrs, mr->key >> 8);
	spin_lock_irq(&sib_lock);	/* waits for earlier lookups to finish */
	spin_unlock_irq(&sib_lock);
	kvfree(mr->pages);
	kfree(mr);
	return 0;
}

static int set_page(struct ib_mr *ibmr, u64 addr)
{
	struct sib_mr *mr = to_sib(mr, ibmr);

	if (mr->npages == mr->max_pages)
		return -ENOMEM;
	mr->pages[mr->npages++] = addr;
	return 0;
}

static int map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int n,
		     unsigned int *off)
{
	to_sib(mr, ibmr)->npages = 0;
	return ib_sg_to_pages(ibmr, sg, n, off, set_page);
}

const struct ib_device_ops sib_mr_ops = {
	.get_dma_mr = get_dma_mr,
	.reg_user_mr = reg_user_mr,
	.dereg_mr = dereg_mr,
	.alloc_mr = alloc_mr,
	.map_mr_sg = map_mr_sg,
};

/* ---- called by the wire: under sib_lock ---- */

static struct sib_mr *mr_find(u32 key)
{
	struct sib_mr *mr = xa_load(&sib_mrs, key >> 8);

	return mr && mr->valid && mr->key == key ? mr : NULL;
}

static bool mr_covers(struct sib_mr *mr, struct ib_pd *pd, u64 va, u32 len, int access)
{
	if (!mr || mr->pd != pd || (mr->access & access) != access)
		return false;
	return va >= mr->iova && va - mr->iova <= mr->length &&
	       len <= mr->length - (va - mr->iova);
}

/* Whether the owner of this protection domain has this access to its own scatter list. */
bool sib_sg_ok(struct ib_pd *pd, const struct ib_sge *s, int n, int access)
{
	for (; n--; s++)
		if (s->length && s->lkey != SIB_LOCAL_LKEY &&
		    !mr_covers(mr_find(s->lkey), pd, s->addr, s->length, access))
			return false;
	return true;
}

/* Whether the other end has this access.  Zero-length operations check nothing. */
bool sib_rkey_ok(struct ib_pd *pd, const struct ib_sge *remote, int access)
{
	return !remote->length ||
	       mr_covers(mr_find(remote->lkey), pd, remote->addr, remote->length, access);
}

static void *cursor_chunk(struct sib_cursor *c, u32 *len)
{
	struct sib_mr *mr;
	u64 va, off;

	while (c->n && c->off >= c->s->length) {
		c->off -= c->s->length;
		c->s++;
		c->n--;
	}
	if (!c->n)
		return NULL;
	va = c->s->addr + c->off;
	*len = c->s->length - c->off;
	if (c->s->lkey == SIB_LOCAL_LKEY)
		return (void *)(uintptr_t)va;
	mr = mr_find(c->s->lkey);
	if (!mr)
		return NULL;
	if (mr->dma)
		return (void *)(uintptr_t)va;
	off = va - mr->iova + (mr->iova & (mr->page_size - 1));
	if (off / mr->page_size >= mr->npages)
		return NULL;
	*len = min_t(u64, *len, mr->page_size - off % mr->page_size);
	return (void *)(uintptr_t)(mr->pages[off / mr->page_size] + off % mr->page_size);
}

/* Copy all of the source; false if the destination is too short. */
bool sib_copy(struct sib_cursor dst, struct sib_cursor src)
{
	u32 dn, sn;
	void *d, *s;

	while ((s = cursor_chunk(&src, &sn))) {
		d = cursor_chunk(&dst, &dn);
		if (!d)
			return false;
		sn = min(sn, dn);
		memcpy(d, s, sn);
		src.off += sn;
		dst.off += sn;
	}
	return true;
}

bool sib_mr_reg(struct sib_qp *qp, const struct sib_wqe *w)
{
	struct sib_mr *mr = xa_load(&sib_mrs, w->key >> 8);
	u64 end;

	if (!mr || mr->dma || mr->valid || mr->pd != qp->ib.pd)
		return false;
	mr->page_size = mr->ib.page_size;
	end = (w->raddr & (mr->page_size - 1)) + w->rlen;
	if (end > (u64)mr->npages * mr->page_size)
		return false;
	mr->key = w->key;
	mr->iova = w->raddr;
	mr->length = w->rlen;
	mr->access = w->access;
	mr->valid = true;
	return true;
}

bool sib_mr_inv(struct sib_qp *qp, u32 key)
{
	struct sib_mr *mr = xa_load(&sib_mrs, key >> 8);

	if (!mr || mr->dma || mr->key != key || mr->pd != qp->ib.pd)
		return false;
	mr->valid = false;
	return true;
}
