import type { Transport } from "@connectrpc/connect";
import { serviceCaller } from "@millwright/caller";
import { events } from "@millwright/contracts";
import { feedReader, type FeedReader } from "@millwright/events";
import { newUid } from "@millwright/ids";
import { call, clientFor, type CallerSigner } from "@millwright/rpc";

/** Returns a reader of an upstream service's events, which calls in this service's own name. */
export const upstreamFeed = (transport: Transport, signer: CallerSigner): FeedReader =>
  feedReader(clientFor(events.EventFeedService, transport, { signer }), () =>
    call(serviceCaller(signer.service, newUid())),
  );
