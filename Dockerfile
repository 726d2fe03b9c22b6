# The image of the Pet Store service. scripts/build-image.sh builds it.
ARG NODE_IMAGE=node:24-trixie-slim
ARG RUNTIME_IMAGE=gcr.io/distroless/nodejs24-debian13

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY . .
RUN npm run build && find dist -name '*.map' -delete

FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Type definitions and source maps are half of what is installed, and not used at run time.
RUN npm ci --ignore-scripts --omit=dev && find node_modules -type f -regex '.*\.\([cm]?ts\|map\)' -delete

FROM ${RUNTIME_IMAGE}
# Official images have Node.js in /nodejs/bin or /usr/local/bin.
ENV PATH=/nodejs/bin:/usr/local/bin:/usr/bin:/bin NODE_ENV=production HOST=0.0.0.0
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY package.json LICENSE ./
COPY config/plans.json config/
COPY --from=build /app/dist/src dist/src
# A number, so that Kubernetes can verify that the user is not root. It is the user "nonroot" of the default runtime image.
USER 65532:65532
# Not the admin port: "docker run --publish-all" would publish it.
EXPOSE 8080
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s \
  CMD ["node", "-e", "require('http').get(`http://127.0.0.1:${process.env.PORT || 8080}/readyz`, (r) => process.exit(r.statusCode === 200 ? 0 : 1))"]
# tracing.js loads OpenTelemetry only if OTEL_EXPORTER_OTLP_ENDPOINT is set.
ENTRYPOINT ["node", "--import", "./dist/src/tracing.js", "dist/src/main.js"]
CMD ["serve"]
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Pet Store" \
  org.opencontainers.image.description="An HTTP and JSON interface to a store of animals" \
  org.opencontainers.image.licenses=MIT \
  org.opencontainers.image.revision=${REVISION}
