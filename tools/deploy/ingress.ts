import { once } from "node:events";
import { request as httpRequest, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { Certificate } from "./certificates.ts";
import type { Manifest } from "./render.ts";

/** Sends requests for a host below a path to a port of a Service. */
export type Route = { readonly host: string; readonly path: string; readonly service: string; readonly port: number };

/** Returns the routes of Ingresses and HTTPRoutes. Both match whole elements of the path, the longest one first. */
export function routesOf(manifests: readonly Manifest[]): Route[] {
  const portOf = (service: string, name: string): number => {
    const { spec } = manifests.find(({ kind, metadata }) => kind === "Service" && metadata.name === service)!;
    return spec.ports.find((port: { name: string }) => port.name === name).port;
  };
  const routes = manifests.flatMap(({ kind, spec }): Route[] => {
    if (kind === "Ingress")
      return spec.rules.flatMap(({ host, http }: any) =>
        http.paths.map(({ path, backend: { service } }: any) => ({
          host,
          path,
          service: service.name,
          port: service.port.number ?? portOf(service.name, service.port.name),
        })),
      );
    if (kind === "HTTPRoute")
      return spec.hostnames.flatMap((host: string) =>
        spec.rules.flatMap(({ matches, backendRefs: [backend] }: any) =>
          matches.map(({ path }: any) => ({ host, path: path.value, service: backend.name, port: backend.port })),
        ),
      );
    return [];
  });
  return routes.toSorted((a, b) => b.path.length - a.path.length);
}

/** Returns the route of a request, undefined if there is none. */
export const routeFor = (routes: readonly Route[], host: string, path: string): Route | undefined =>
  routes.find((route) => route.host === host && `${path}/`.startsWith(route.path.replace(/\/?$/, "/")));

/** Serves routes over TLS, as an ingress controller does. */
export async function serveRoutes(
  address: string,
  certificate: Certificate,
  routes: readonly Route[],
  addressOf: (service: string) => string,
): Promise<Server> {
  const listener: RequestListener = (request, response) => {
    const [host = ""] = (request.headers.host ?? "").split(":");
    const route = routeFor(routes, host, request.url!.split("?")[0]!);
    if (route) forward(request, response, { host: addressOf(route.service), port: route.port });
    else response.writeHead(404).end();
  };
  const server = createServer(certificate, listener);
  server.listen(443, address);
  await once(server, "listening");
  return server;
}

function forward(request: IncomingMessage, response: ServerResponse, to: { host: string; port: number }): void {
  const { method, url, headers } = request;
  const passed = httpRequest({ ...to, method, path: url, headers, agent: false }, (answer) => {
    response.writeHead(answer.statusCode!, answer.headers);
    answer.pipe(response);
  });
  passed.on("error", () => (response.headersSent ? response.destroy() : response.writeHead(502).end()));
  response.on("close", () => passed.destroy());
  request.pipe(passed);
}
