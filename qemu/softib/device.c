// SPDX-License-Identifier: GPL-2.0-only
/* The device as a whole: attributes, protection domains, address handles. */
#include "softib.h"

#define SIB_PART_ID 0x50f7

static int query_device(struct ib_device *ibdev, struct ib_device_attr *a,
			struct ib_udata *udata)
{
	int ret = sib_command(sib_hca_of(ibdev));

	if (ret)
		return ret;
	a->fw_ver = 1;
	a->sys_image_guid = sib_fabric_guid(sib_hca_of(ibdev));
	a->max_mr_size = ~0ULL;
	a->page_size_cap = PAGE_SIZE;
	a->vendor_id = 1;
	a->vendor_part_id = SIB_PART_ID;
	a->hw_ver = 1;
	a->max_qp = 65536;
	a->max_qp_wr = SIB_MAX_WR;
	a->device_cap_flags = IB_DEVICE_PORT_ACTIVE_EVENT | IB_DEVICE_SYS_IMAGE_GUID |
			      IB_DEVICE_RC_RNR_NAK_GEN | IB_DEVICE_CURR_QP_STATE_MOD |
			      IB_DEVICE_MEM_MGT_EXTENSIONS;
	/* consumers need no DMA region of their own */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 0, 0)
	a->kernel_cap_flags = IBK_LOCAL_DMA_LKEY;
#else
	a->device_cap_flags |= IB_DEVICE_LOCAL_DMA_LKEY;
#endif
	a->max_send_sge = SIB_MAX_SGE;
	a->max_recv_sge = SIB_MAX_SGE;
	a->max_sge_rd = 16;	/* the NFS client would use a larger value as its MR size */
	a->max_fast_reg_page_list_len = SIB_MAX_MR_PAGES;
	a->max_cq = 65536;
	a->max_cqe = SIB_MAX_CQE;
	a->max_mr = 65536;
	a->max_pd = 65536;
	a->max_qp_rd_atom = SIB_RD_ATOM;
	a->max_qp_init_rd_atom = SIB_RD_ATOM;
	a->max_res_rd_atom = SIB_RD_ATOM * 65536;
	a->atomic_cap = IB_ATOMIC_NONE;
	a->max_mcast_grp = 8192;
	a->max_mcast_qp_attach = 64;
	a->max_total_mcast_qp_attach = 8192 * 64;
	a->max_ah = 65536;
	a->max_srq = 4096;
	a->max_srq_wr = SIB_MAX_WR;
	/* IPoIB's connected MTU is this many pages, less 16 octets */
	a->max_srq_sge = SIB_MAX_SGE;
	a->max_pkeys = sib_num_pkeys;
	a->local_ca_ack_delay = 15;
	return 0;
}

static int modify_device(struct ib_device *ibdev, int mask, struct ib_device_modify *m)
{
	if (mask & ~IB_DEVICE_MODIFY_NODE_DESC)
		return -EOPNOTSUPP;
	if (mask & IB_DEVICE_MODIFY_NODE_DESC)
		memcpy(ibdev->node_desc, m->node_desc, sizeof(ibdev->node_desc));
	return 0;
}

static void get_dev_fw_str(struct ib_device *ibdev, char *s)
{
	snprintf(s, IB_FW_VERSION_NAME_MAX, "0.1");
}

/*
 * User space may open the device, query it and read its events, to wait for a
 * port.  The verbs that create a queue or a memory region fail.
 */
static int alloc_ucontext(struct ib_ucontext *c, struct ib_udata *u)
{
	return sib_command(sib_hca_of(c->device));
}

static void dealloc_ucontext(struct ib_ucontext *c)
{
	sib_command(sib_hca_of(c->device));
}

/* Nothing to unmap, but removal and a netns move require this callback. */
static void disassociate_ucontext(struct ib_ucontext *c)
{
}

static int alloc_pd(struct ib_pd *pd, struct ib_udata *u)
{
	return 0;
}

static int dealloc_pd(struct ib_pd *pd, struct ib_udata *u)
{
	return 0;
}

static int create_ah(struct ib_ah *ah, struct rdma_ah_init_attr *a, struct ib_udata *u)
{
	to_sib(ah, ah)->attr = *a->ah_attr;
	return 0;
}

static int query_ah(struct ib_ah *ah, struct rdma_ah_attr *a)
{
	*a = to_sib(ah, ah)->attr;
	return 0;
}

static int destroy_ah(struct ib_ah *ah, u32 flags)
{
	return 0;
}

static ssize_t hca_type_show(struct device *dev, struct device_attribute *a, char *buf)
{
	return sysfs_emit(buf, "SOFTIB\n");
}
static DEVICE_ATTR_RO(hca_type);

static ssize_t hw_rev_show(struct device *dev, struct device_attribute *a, char *buf)
{
	return sysfs_emit(buf, "1\n");
}
static DEVICE_ATTR_RO(hw_rev);

static struct attribute *sib_attrs[] = {
	&dev_attr_hca_type.attr, &dev_attr_hw_rev.attr, NULL
};

const struct attribute_group sib_attr_group = { .attrs = sib_attrs };

/* Just enough for ibv_devinfo: the distribution's rxe provider opens the device. */
const struct ib_device_ops sib_rxe_ops = {
	.driver_id = RDMA_DRIVER_RXE,
	.uverbs_abi_ver = 2,
};

const struct ib_device_ops sib_device_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = 1,

	.query_device = query_device,
	.modify_device = modify_device,
	.get_dev_fw_str = get_dev_fw_str,
	.process_mad = sib_process_mad,
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 14, 0)
	.device_group = &sib_attr_group,
#endif

	.alloc_ucontext = alloc_ucontext,
	.dealloc_ucontext = dealloc_ucontext,
	.disassociate_ucontext = disassociate_ucontext,
	.alloc_pd = alloc_pd,
	.dealloc_pd = dealloc_pd,
	.create_ah = create_ah,
	.query_ah = query_ah,
	.destroy_ah = destroy_ah,

	INIT_RDMA_OBJ_SIZE(ib_ah, sib_ah, ib),
	INIT_RDMA_OBJ_SIZE(ib_pd, sib_pd, ib),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, sib_ucontext, ib),
};
