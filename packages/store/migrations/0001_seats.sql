CREATE TABLE "seats" (
	"id" text PRIMARY KEY NOT NULL,
	"workspace_id" text NOT NULL,
	"role" text NOT NULL,
	"linked" boolean DEFAULT true NOT NULL,
	"max_turns" integer NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "seat_turns" CHECK ("seats"."max_turns" >= 1)
);
--> statement-breakpoint
ALTER TABLE "api_tokens" ADD COLUMN "seat_id" text;--> statement-breakpoint
ALTER TABLE "missions" ADD COLUMN "cancel_detail" text;--> statement-breakpoint
ALTER TABLE "missions" ADD COLUMN "seat_id" text;--> statement-breakpoint
ALTER TABLE "missions" ADD COLUMN "seat_key_id" text;--> statement-breakpoint
ALTER TABLE "missions" ADD COLUMN "seat_revoked" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "seats" ADD CONSTRAINT "seats_workspace_id_workspaces_id_fk" FOREIGN KEY ("workspace_id") REFERENCES "public"."workspaces"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "seats_by_role" ON "seats" USING btree ("workspace_id","role");--> statement-breakpoint
ALTER TABLE "api_tokens" ADD CONSTRAINT "api_tokens_seat_id_seats_id_fk" FOREIGN KEY ("seat_id") REFERENCES "public"."seats"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "missions" ADD CONSTRAINT "missions_seat_id_seats_id_fk" FOREIGN KEY ("seat_id") REFERENCES "public"."seats"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "missions" ADD CONSTRAINT "missions_seat_key_id_api_tokens_id_fk" FOREIGN KEY ("seat_key_id") REFERENCES "public"."api_tokens"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "missions_by_seat" ON "missions" USING btree ("seat_id");--> statement-breakpoint
ALTER TABLE "api_tokens" ADD CONSTRAINT "token_of_seat" CHECK (("api_tokens"."role" = 'seat') = ("api_tokens"."seat_id" is not null));