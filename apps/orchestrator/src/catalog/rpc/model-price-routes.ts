import { create } from "@bufbuild/protobuf";
import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import { orchestrator } from "@millwright/contracts";
import { omitUndefined } from "@millwright/json";
import { callerOf } from "@millwright/rpc";
import type { ModelPrice } from "../domain/model-price.ts";
import { addModelPrice, listModelPrices, type ModelPricesDeps } from "../usecases/model-prices.ts";

/** The price book of models. */
export function modelPriceRoutes(router: ConnectRouter, deps: ModelPricesDeps): void {
  router.service(orchestrator.ModelPriceService, {
    async listModelPrices({ modelId, pageSize, pageToken }) {
      const page = await listModelPrices(deps, { modelId: modelId || undefined, pageSize, pageToken });
      return { prices: page.prices.map(modelPriceMessage), nextPageToken: page.nextPageToken };
    },
    async addModelPrice({ modelId, idempotencyKey, effectiveFrom, ...micros }, context) {
      const price = {
        modelId,
        inputPerMillionMicros: micros.inputMicros,
        outputPerMillionMicros: micros.outputMicros,
        ...omitUndefined({
          cacheReadPerMillionMicros: micros.cacheReadMicros,
          cacheWritePerMillionMicros: micros.cacheWriteMicros,
        }),
        effectiveFrom: effectiveFrom && timestampDate(effectiveFrom),
      };
      return { price: modelPriceMessage(await addModelPrice(deps, callerOf(context), price, idempotencyKey)) };
    },
  });
}

const modelPriceMessage = (price: ModelPrice): orchestrator.ModelPrice =>
  create(orchestrator.ModelPriceSchema, {
    modelId: price.modelId,
    version: price.version,
    inputMicros: price.inputPerMillionMicros,
    outputMicros: price.outputPerMillionMicros,
    ...omitUndefined({
      cacheReadMicros: price.cacheReadPerMillionMicros,
      cacheWriteMicros: price.cacheWritePerMillionMicros,
    }),
    effectiveFrom: timestampFromDate(price.effectiveFrom),
    createdAt: timestampFromDate(price.createdAt),
    createdByType: price.createdBy?.type ?? "",
    createdByUid: price.createdBy?.uid ?? "",
  });
