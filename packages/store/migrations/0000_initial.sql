CREATE TABLE "api_tokens" (
	"id" text PRIMARY KEY NOT NULL,
	"workspace_id" text NOT NULL,
	"name" text NOT NULL,
	"hash" text NOT NULL,
	"role" text NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"revoked_at" timestamp (3) with time zone,
	CONSTRAINT "api_tokens_hash_unique" UNIQUE("hash")
);
--> statement-breakpoint
CREATE TABLE "artifacts" (
	"id" text PRIMARY KEY NOT NULL,
	"mission_id" text NOT NULL,
	"phase_id" text NOT NULL,
	"turn_id" text,
	"attempt" integer,
	"name" text NOT NULL,
	"kind" text NOT NULL,
	"mime" text NOT NULL,
	"bytes" bigint NOT NULL,
	"digest" text NOT NULL,
	"truncated" boolean DEFAULT false NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "attempts" (
	"turn_id" text NOT NULL,
	"attempt" integer NOT NULL,
	"epoch" integer NOT NULL,
	"node_id" text NOT NULL,
	"state" text NOT NULL,
	"outcome" jsonb,
	"detail" text DEFAULT '' NOT NULL,
	"tree" jsonb,
	"verified" boolean DEFAULT false NOT NULL,
	"demand" jsonb,
	"result" jsonb,
	"last_seq" integer DEFAULT 0 NOT NULL,
	"log_bytes" bigint DEFAULT 0 NOT NULL,
	"lease_seq" bigint DEFAULT 0 NOT NULL,
	"started_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"ended_at" timestamp (3) with time zone,
	CONSTRAINT "attempts_turn_id_attempt_pk" PRIMARY KEY("turn_id","attempt"),
	CONSTRAINT "attempt_state" CHECK ("attempts"."state" in ('reserved', 'accepted', 'ended'))
);
--> statement-breakpoint
CREATE TABLE "events" (
	"mission_id" text NOT NULL,
	"seq" integer NOT NULL,
	"at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"body" jsonb NOT NULL,
	CONSTRAINT "events_mission_id_seq_pk" PRIMARY KEY("mission_id","seq")
);
--> statement-breakpoint
CREATE TABLE "join_tokens" (
	"id" text PRIMARY KEY NOT NULL,
	"hash" text NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"expires_at" timestamp (3) with time zone NOT NULL,
	"used_at" timestamp (3) with time zone,
	"used_by" text,
	CONSTRAINT "join_tokens_hash_unique" UNIQUE("hash")
);
--> statement-breakpoint
CREATE TABLE "log_chunks" (
	"turn_id" text NOT NULL,
	"attempt" integer NOT NULL,
	"at_offset" bigint NOT NULL,
	"bytes" "bytea" NOT NULL,
	CONSTRAINT "log_chunks_turn_id_attempt_at_offset_pk" PRIMARY KEY("turn_id","attempt","at_offset")
);
--> statement-breakpoint
CREATE TABLE "missions" (
	"id" text PRIMARY KEY NOT NULL,
	"workspace_id" text NOT NULL,
	"title" text NOT NULL,
	"state" text NOT NULL,
	"cancel_requested" boolean DEFAULT false NOT NULL,
	"version" integer DEFAULT 0 NOT NULL,
	"next_event_seq" integer DEFAULT 1 NOT NULL,
	"spec" jsonb NOT NULL,
	"base" jsonb,
	"waiting" text,
	"end_record" jsonb,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"ended_at" timestamp (3) with time zone,
	CONSTRAINT "mission_state" CHECK ("missions"."state" in ('draft', 'running', 'completed', 'failed', 'cancelled'))
);
--> statement-breakpoint
CREATE TABLE "nodes" (
	"id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"public_key" text NOT NULL,
	"draining" boolean DEFAULT false NOT NULL,
	"capabilities" jsonb,
	"health" jsonb,
	"health_seq" bigint DEFAULT 0 NOT NULL,
	"idle_baseline_mib" integer,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"revoked_at" timestamp (3) with time zone,
	CONSTRAINT "nodes_name_unique" UNIQUE("name")
);
--> statement-breakpoint
CREATE TABLE "phases" (
	"id" text PRIMARY KEY NOT NULL,
	"mission_id" text NOT NULL,
	"position" integer NOT NULL,
	"kind" text NOT NULL,
	"state" text NOT NULL,
	"iteration" integer DEFAULT 0 NOT NULL,
	"outcome" jsonb,
	"detail" text DEFAULT '' NOT NULL,
	"delivery_state" text DEFAULT 'none' NOT NULL,
	"delivery_failed" boolean DEFAULT false NOT NULL,
	"result_turn" text,
	"result_attempt" integer,
	"run_id" text,
	"delivery" jsonb,
	"approved_by" text,
	CONSTRAINT "phase_state" CHECK ("phases"."state" in ('pending', 'running', 'completed', 'failed', 'skipped'))
);
--> statement-breakpoint
CREATE TABLE "runs" (
	"id" text PRIMARY KEY NOT NULL,
	"mission_id" text NOT NULL,
	"phase_id" text NOT NULL,
	"state" text NOT NULL,
	"checkpoint" jsonb,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "settings" (
	"key" text PRIMARY KEY NOT NULL,
	"value" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "snapshots" (
	"workspace_id" text NOT NULL,
	"snapshot_id" text NOT NULL,
	"blob_digest" text NOT NULL,
	"bytes" bigint NOT NULL,
	CONSTRAINT "snapshots_workspace_id_snapshot_id_pk" PRIMARY KEY("workspace_id","snapshot_id")
);
--> statement-breakpoint
CREATE TABLE "turns" (
	"id" text PRIMARY KEY NOT NULL,
	"mission_id" text NOT NULL,
	"phase_id" text NOT NULL,
	"run_id" text NOT NULL,
	"step" integer NOT NULL,
	"graph_node" text NOT NULL,
	"state" text NOT NULL,
	"attempt" integer DEFAULT 0 NOT NULL,
	"tries" integer DEFAULT 0 NOT NULL,
	"ordinal" integer NOT NULL,
	CONSTRAINT "turn_state" CHECK ("turns"."state" in ('waiting', 'running', 'ended'))
);
--> statement-breakpoint
CREATE TABLE "workspaces" (
	"id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "workspaces_name_unique" UNIQUE("name")
);
--> statement-breakpoint
ALTER TABLE "api_tokens" ADD CONSTRAINT "api_tokens_workspace_id_workspaces_id_fk" FOREIGN KEY ("workspace_id") REFERENCES "public"."workspaces"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "artifacts" ADD CONSTRAINT "artifacts_mission_id_missions_id_fk" FOREIGN KEY ("mission_id") REFERENCES "public"."missions"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "attempts" ADD CONSTRAINT "attempts_turn_id_turns_id_fk" FOREIGN KEY ("turn_id") REFERENCES "public"."turns"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "attempts" ADD CONSTRAINT "attempts_node_id_nodes_id_fk" FOREIGN KEY ("node_id") REFERENCES "public"."nodes"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "events" ADD CONSTRAINT "events_mission_id_missions_id_fk" FOREIGN KEY ("mission_id") REFERENCES "public"."missions"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "log_chunks" ADD CONSTRAINT "log_chunks_turn_id_turns_id_fk" FOREIGN KEY ("turn_id") REFERENCES "public"."turns"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "missions" ADD CONSTRAINT "missions_workspace_id_workspaces_id_fk" FOREIGN KEY ("workspace_id") REFERENCES "public"."workspaces"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "phases" ADD CONSTRAINT "phases_mission_id_missions_id_fk" FOREIGN KEY ("mission_id") REFERENCES "public"."missions"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "runs" ADD CONSTRAINT "runs_mission_id_missions_id_fk" FOREIGN KEY ("mission_id") REFERENCES "public"."missions"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "snapshots" ADD CONSTRAINT "snapshots_workspace_id_workspaces_id_fk" FOREIGN KEY ("workspace_id") REFERENCES "public"."workspaces"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "turns" ADD CONSTRAINT "turns_mission_id_missions_id_fk" FOREIGN KEY ("mission_id") REFERENCES "public"."missions"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "artifacts_by_name" ON "artifacts" USING btree ("mission_id","phase_id","turn_id","attempt","name");--> statement-breakpoint
CREATE INDEX "attempts_open" ON "attempts" USING btree ("node_id") WHERE state <> 'ended';--> statement-breakpoint
CREATE INDEX "missions_by_state" ON "missions" USING btree ("state");--> statement-breakpoint
CREATE INDEX "missions_by_age" ON "missions" USING btree ("workspace_id","created_at");--> statement-breakpoint
CREATE UNIQUE INDEX "phases_in_order" ON "phases" USING btree ("mission_id","position");--> statement-breakpoint
CREATE INDEX "turns_waiting" ON "turns" USING btree ("state");--> statement-breakpoint
CREATE INDEX "turns_of_mission" ON "turns" USING btree ("mission_id");