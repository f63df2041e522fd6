import { createRoute, lazyRouteComponent, redirect } from "@tanstack/react-router";
import * as v from "valibot";
import { rootRoute } from "../../app/root-route.tsx";
import { searchChoice, searchText } from "../../ui/search-params.ts";

const pagedSearch = v.object({ cursor: searchText });

const parents = [{ label: "Factories", to: "/factories" }];

export const factoriesRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/factories",
    validateSearch: v.object({ search: searchText, cursor: searchText, dialog: searchChoice("create") }),
    component: lazyRouteComponent(() => import("./factories-page.tsx")),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/factories/$factoryUid",
    staticData: { parents },
    component: lazyRouteComponent(() => import("./definition-page.tsx")),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/factories/$factoryUid/plan",
    staticData: { parents },
    component: lazyRouteComponent(() => import("./plan-page.tsx")),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/factories/$factoryUid/branches",
    staticData: { parents },
    component: lazyRouteComponent(() => import("./branches-page.tsx")),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/factories/$factoryUid/agents",
    staticData: { parents },
    component: lazyRouteComponent(() => import("./agents-page.tsx")),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/factories/$factoryUid/skills",
    staticData: { parents },
    component: lazyRouteComponent(() => import("./skills-page.tsx")),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/factories/$factoryUid/automations",
    validateSearch: pagedSearch,
    staticData: { parents },
    component: lazyRouteComponent(() => import("./automations-page.tsx")),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/factories/$factoryUid/automations/$automationUid",
    validateSearch: pagedSearch,
    staticData: { parents },
    component: lazyRouteComponent(() => import("./automation-page.tsx")),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/factories/$factoryUid/decisions",
    validateSearch: v.object({
      /** Uid of an event or of a delivery. */
      event: searchText,
      cursor: searchText,
    }),
    staticData: { parents },
    component: lazyRouteComponent(() => import("./decisions-page.tsx")),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    // `trigger_url` of the runs that an event started
    path: "/factories/$factoryUid/events/$eventUid",
    beforeLoad: ({ params: { factoryUid, eventUid } }) => {
      throw redirect({
        to: "/factories/$factoryUid/decisions",
        params: { factoryUid },
        search: { event: eventUid },
        replace: true,
      });
    },
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/factories/$factoryUid/webhooks",
    staticData: { parents },
    component: lazyRouteComponent(() => import("./webhooks-page.tsx")),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/factories/$factoryUid/webhooks/$webhookUid",
    validateSearch: pagedSearch,
    staticData: { parents },
    component: lazyRouteComponent(() => import("./webhook-page.tsx")),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/factories/$factoryUid/webhooks/$webhookUid/filter",
    validateSearch: v.object({ filter: searchText }),
    staticData: { parents },
    component: lazyRouteComponent(() => import("./filter-page.tsx")),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/factories/$factoryUid/webhooks/$webhookUid/deliveries/$deliveryUid",
    staticData: { parents },
    component: lazyRouteComponent(() => import("./delivery-page.tsx")),
  }),
] as const;
