import { z } from "zod";
import { pathUid, uuid } from "../../rest/index.ts";

type Uids = Readonly<Record<string, string>>;
type WebhookRef = { readonly factoryUid: string; readonly webhookUid: string };

/** Parameter of the paths below a factory. */
export const factoryParam = { uid: pathUid("factory") };
/** Body or query member that names the factory in the published paths, which do not contain it. */
export const factoryMember = { factory_uid: uuid() };

const webhook = { webhookUid: pathUid("webhook") };
const delivery = { deliveryUid: pathUid("delivery") };
/** Published paths (`/factory/webhooks/{uid}`) do not contain the factory. */
const webhookParam = { uid: pathUid("webhook") };

/** Both path forms of a webhook, with their parameters and the reference that the parameters identify. */
export const WEBHOOK_PATHS = [
  {
    path: "/factory/{uid}/webhooks/{webhookUid}",
    params: z.object({ ...factoryParam, ...webhook }),
    withDelivery: z.object({ ...factoryParam, ...webhook, ...delivery }),
    ref: ({ uid, webhookUid }: Uids): WebhookRef => ({ factoryUid: uid!, webhookUid: webhookUid! }),
  },
  {
    path: "/factory/webhooks/{uid}",
    params: z.object(webhookParam),
    withDelivery: z.object({ ...webhookParam, ...delivery }),
    ref: ({ uid }: Uids): WebhookRef => ({ factoryUid: "", webhookUid: uid! }),
  },
];
