// SPDX-License-Identifier: GPL-2.0-only
/*
 * The SMI device of a card with several planes (XDR): a sub-device of the HCA whose
 * ports have QP0 and nothing else, one for each plane.  As mlx5 does since Linux 6.11.
 */
#include <rdma/rdma_netlink.h>
#include "softib.h"

static unsigned int smi[SIB_MAX_HCAS], smi_count;
module_param_array(smi, uint, &smi_count, 0444);
MODULE_PARM_DESC(smi, "planes of each HCA's SMI sub-device, 0: none; Linux 6.11 and 6.12");

void sib_smi_init(struct sib_hca *hca)
{
	hca->planes = smi[sib_list_index(hca, smi_count)];
}

/* Later kernels do not export ib_add_sub_device. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0) && \
	LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)

/* The planes' own state: no cable leads to them, local SMPs do. */
struct sib_smi {
	struct sib_hca	hca;
	struct sib_hca	*parent;
	struct sib_link	link[SIB_MAX_PORTS];
};

/* State and addresses are those of the port that the planes make up. */
static int query_port(struct ib_device *ibdev, sib_port_nr n, struct ib_port_attr *a)
{
	struct sib_smi *s = container_of(sib_hca_of(ibdev), struct sib_smi, hca);
	struct ib_device *parent = &s->parent->dev->ib;
	int ret = parent->ops.query_port(parent, 1, a);

	a->active_width = IB_WIDTH_1X;
	return ret;
}

static int query_gid(struct ib_device *ibdev, sib_port_nr n, int i, union ib_gid *gid)
{
	struct sib_smi *s = container_of(sib_hca_of(ibdev), struct sib_smi, hca);
	struct ib_device *parent = &s->parent->dev->ib;

	return parent->ops.query_gid(parent, 1, i, gid);
}

static int get_port_immutable(struct ib_device *ibdev, sib_port_nr n, struct ib_port_immutable *im)
{
	im->pkey_tbl_len = sib_num_pkeys;
	im->gid_tbl_len = sib_num_gids;
	im->core_cap_flags = RDMA_CORE_CAP_IB_MAD | RDMA_CORE_CAP_IB_SMI;
	im->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

/* Set before sib_port_ops, and therefore instead of what that has. */
static const struct ib_device_ops smi_ops = {
	.query_port = query_port,
	.query_gid = query_gid,
	.get_port_immutable = get_port_immutable,
};

static void smi_free(struct sib_smi *s)
{
	int n;

	for (n = 0; n < SIB_MAX_PORTS; n++) {
		sib_link_exit(&s->link[n]);
		sib_port_exit(&s->hca.port[n]);
	}
	kfree(s);
}

static struct sib_smi *smi_alloc(struct sib_hca *parent)
{
	struct sib_smi *s = kzalloc(sizeof(*s), GFP_KERNEL);
	int n;

	if (!s)
		return NULL;
	s->parent = parent;
	s->hca.index = parent->index;
	s->hca.guid = parent->guid;
	s->hca.node_guid = parent->node_guid;
	s->hca.parent = parent->parent;
	strscpy(s->hca.name, parent->name, sizeof(s->hca.name));
	for (n = 0; n < SIB_MAX_PORTS; n++) {
		/* the parameters have been found good when the parent's slot was made */
		sib_port_init(&s->hca.port[n], &s->hca, n + 1);
		sib_link_init(&s->link[n], &s->hca.port[n], NULL);
		s->hca.port[n].guids[0] = parent->port[0].guids[0];
		sib_port_reset(&s->hca.port[n]);
	}
	return s;
}

static struct ib_device *add_sub_dev(struct ib_device *ibdev, enum rdma_nl_dev_type type,
				     const char *name)
{
	struct sib_hca *parent = sib_hca_of(ibdev);
	u32 planes = READ_ONCE(parent->planes);
	struct sib_device *dev;
	struct sib_smi *s;
	int ret = -ENOMEM;

	if (type != RDMA_DEVICE_TYPE_SMI || !planes || planes > SIB_MAX_PORTS)
		return ERR_PTR(-EOPNOTSUPP);
	s = smi_alloc(parent);
	if (!s)
		return ERR_PTR(ret);
	dev = ib_alloc_device(sib_device, ib);
	if (!dev)
		goto err_smi;
	ib_set_device_ops(&dev->ib, &smi_ops);
	sib_device_setup(dev, &s->hca);
	dev->ib.phys_port_cnt = planes;
	dev->ib.type = type;
	s->hca.dev = dev;
	ret = ib_register_device(&dev->ib, name, NULL);
	if (ret)
		goto err_device;
	return &dev->ib;

err_device:
	ib_dealloc_device(&dev->ib);
err_smi:
	smi_free(s);
	return ERR_PTR(ret);
}

static void del_sub_dev(struct ib_device *ibdev)
{
	struct sib_smi *s = container_of(sib_hca_of(ibdev), struct sib_smi, hca);

	ib_unregister_device(ibdev);
	ib_dealloc_device(ibdev);
	smi_free(s);
}

const struct ib_device_ops sib_smi_parent_ops = {
	.add_sub_dev = add_sub_dev,
	.del_sub_dev = del_sub_dev,
};

/* On hardware `rdma dev add` does so.  ib_unregister_device of the parent removes it. */
int sib_smi_add(struct sib_hca *hca)
{
	char name[IB_DEVICE_NAME_MAX];

	if (!READ_ONCE(hca->planes))
		return 0;
	snprintf(name, sizeof(name), "smi%d", hca->index);
	return ib_add_sub_device(&hca->dev->ib, RDMA_DEVICE_TYPE_SMI, name);
}

#else

const struct ib_device_ops sib_smi_parent_ops = { };

int sib_smi_add(struct sib_hca *hca)
{
	return READ_ONCE(hca->planes) ? -EOPNOTSUPP : 0;
}

#endif
