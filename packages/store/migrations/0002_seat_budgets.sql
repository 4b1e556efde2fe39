CREATE TABLE "seat_use" (
	"seat_id" text NOT NULL,
	"day" date NOT NULL,
	"attempts" integer NOT NULL,
	"tokens" bigint NOT NULL,
	"micros" bigint NOT NULL,
	CONSTRAINT "seat_use_seat_id_day_pk" PRIMARY KEY("seat_id","day")
);
--> statement-breakpoint
ALTER TABLE "attempts" ADD COLUMN "seat_grant" jsonb;--> statement-breakpoint
ALTER TABLE "attempts" ADD COLUMN "seat_charge" jsonb;--> statement-breakpoint
ALTER TABLE "seats" ADD COLUMN "lease_ms" bigint;--> statement-breakpoint
ALTER TABLE "seats" ADD COLUMN "budget" jsonb;--> statement-breakpoint
ALTER TABLE "seat_use" ADD CONSTRAINT "seat_use_seat_id_seats_id_fk" FOREIGN KEY ("seat_id") REFERENCES "public"."seats"("id") ON DELETE no action ON UPDATE no action;