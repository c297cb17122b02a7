(* What the signs of a book mean to Coq, and what of them the proofs of its steps use. Nothing here is assumed: sums are
   sums, and each lemma is proved. *)
Require Export Reals ZArith Lia Lra Psatz Nsatz.
Open Scope R_scope.

(* --- finite sums: from lo to hi, and 0 where there is nothing to add --- *)
Fixpoint add_up (terms : nat) (lo : Z) (f : Z -> R) : R :=
  match terms with O => 0 | S rest => f lo + add_up rest (lo + 1)%Z f end.
Definition sum (lo hi : Z) (f : Z -> R) : R := add_up (Z.to_nat (hi - lo + 1)) lo f.
Definition delta (i j : Z) : R := if Z.eqb i j then 1 else 0.

Lemma sum_empty : forall lo hi f, (hi < lo)%Z -> sum lo hi f = 0.
Proof. intros; unfold sum; replace (Z.to_nat (hi - lo + 1)) with O by lia; reflexivity. Qed.

Lemma sum_first : forall lo hi f, (lo <= hi)%Z -> sum lo hi f = f lo + sum (lo + 1) hi f.
Proof.
  intros; unfold sum.
  replace (Z.to_nat (hi - lo + 1)) with (S (Z.to_nat (hi - (lo + 1) + 1))) by lia; reflexivity.
Qed.

(* What holds for nothing to add, and with one more term in front, holds for every sum. *)
Lemma sum_induction : forall (hi : Z) (P : Z -> Prop),
  (forall lo, (hi < lo)%Z -> P lo) -> (forall lo, (lo <= hi)%Z -> P (lo + 1)%Z -> P lo) -> forall lo, P lo.
Proof.
  intros hi P none more lo.
  remember (Z.to_nat (hi - lo + 1)) as terms eqn:count; revert lo count; induction terms as [| rest IH]; intros lo count.
  - apply none; lia.
  - apply more; [lia | apply IH; lia].
Qed.

Ltac by_induction lo hi :=
  pattern lo; apply (sum_induction hi); clear lo; intros lo ?;
  [rewrite ?(sum_empty lo hi) by assumption | intros IH; rewrite ?(sum_first lo hi) by assumption].

Lemma sum_ext : forall lo hi f g, (forall i, (lo <= i <= hi)%Z -> f i = g i) -> sum lo hi f = sum lo hi g.
Proof.
  intros lo hi f g; by_induction lo hi; intros same; [reflexivity |].
  rewrite IH by (intros; apply same; lia); rewrite (same lo) by lia; reflexivity.
Qed.

Lemma sum_plus : forall lo hi f g, sum lo hi (fun i => f i + g i) = sum lo hi f + sum lo hi g.
Proof. intros lo hi f g; by_induction lo hi; [ring | rewrite IH; ring]. Qed.

Lemma sum_scale : forall lo hi c f, sum lo hi (fun i => c * f i) = c * sum lo hi f.
Proof. intros lo hi c f; by_induction lo hi; [ring | rewrite IH; ring]. Qed.

Lemma sum_swap : forall lo hi low high f,
  sum lo hi (fun i => sum low high (fun j => f i j)) = sum low high (fun j => sum lo hi (fun i => f i j)).
Proof.
  intros lo hi low high f; by_induction lo hi.
  - replace 0 with (0 * sum low high (fun _ => 0)) by ring; rewrite <- sum_scale.
    apply sum_ext; intros; rewrite (sum_empty lo hi) by assumption; ring.
  - rewrite IH, <- sum_plus; apply sum_ext; intros; rewrite (sum_first lo hi) by assumption; reflexivity.
Qed.

Lemma sum_telescopes : forall lo hi f F, (lo <= hi + 1)%Z ->
  (forall i, (lo <= i <= hi)%Z -> f i = F (i + 1)%Z - F i) -> sum lo hi f = F (hi + 1)%Z - F lo.
Proof.
  intros lo hi f F; by_induction lo hi.
  - intros; replace lo with (hi + 1)%Z by lia; ring.
  - intros _ step; rewrite IH by (intros; try apply step; lia); rewrite (step lo) by lia; ring.
Qed.

Lemma delta_same : forall i, delta i i = 1.
Proof. intros; unfold delta; rewrite Z.eqb_refl; reflexivity. Qed.

Lemma delta_other : forall i j, i <> j -> delta i j = 0.
Proof. intros i j other; unfold delta; apply Z.eqb_neq in other; rewrite other; reflexivity. Qed.

Lemma delta_swap : forall i j, delta i j = delta j i.
Proof. intros; unfold delta; rewrite Z.eqb_sym; reflexivity. Qed.

Lemma delta_cases : forall i j, delta i j = 0 \/ delta i j = 1.
Proof. intros; unfold delta; destruct (Z.eqb i j); auto. Qed.

Lemma delta_nonneg : forall i j, 0 <= delta i j.
Proof. intros; unfold delta; destruct (Z.eqb i j); lra. Qed.

Lemma sum_zero : forall lo hi f, (forall i, (lo <= i <= hi)%Z -> f i = 0) -> sum lo hi f = 0.
Proof.
  intros lo hi f; by_induction lo hi; intros none; [reflexivity |].
  rewrite IH by (intros; apply none; lia); rewrite (none lo) by lia; ring.
Qed.

Lemma sum_delta : forall lo hi j f, (lo <= j <= hi)%Z -> sum lo hi (fun i => delta i j * f i) = f j.
Proof.
  intros lo hi j f; by_induction lo hi; intros within; [lia |].
  destruct (Z.eq_dec lo j) as [here | later].
  - subst; rewrite delta_same, sum_zero; [ring |]; intros; rewrite delta_other by lia; ring.
  - rewrite IH, delta_other by lia; ring.
Qed.

Lemma sum_split : forall lo at_ hi f, (lo <= at_ + 1)%Z -> (at_ <= hi)%Z ->
  sum lo hi f = sum lo at_ f + sum (at_ + 1) hi f.
Proof.
  intros lo at_ hi f start; revert lo start; refine (sum_induction at_ _ _ _); intros lo H.
  - intros; replace lo with (at_ + 1)%Z by lia; rewrite (sum_empty (at_ + 1) at_) by lia; ring.
  - intros IH _ ?; rewrite (sum_first lo hi), (sum_first lo at_), IH by lia; ring.
Qed.

Lemma sum_nonneg : forall lo hi f, (forall i, (lo <= i <= hi)%Z -> 0 <= f i) -> 0 <= sum lo hi f.
Proof.
  intros lo hi f; by_induction lo hi; intros sign; [lra |].
  apply Rplus_le_le_0_compat; [apply sign; lia | apply IH; intros; apply sign; lia].
Qed.

Lemma sum_pos : forall lo hi f, (lo <= hi)%Z -> (forall i, (lo <= i <= hi)%Z -> 0 < f i) -> 0 < sum lo hi f.
Proof.
  intros lo hi f some sign; rewrite sum_first by assumption.
  apply Rplus_lt_le_0_compat; [apply sign; lia | apply sum_nonneg; intros; apply Rlt_le, sign; lia].
Qed.

(* --- what is linear: an expectation, an integral between fixed ends --- *)
Definition Linear {A : Type} (L : (A -> R) -> R) : Prop :=
  (forall f g, (forall x, f x = g x) -> L f = L g) /\ (forall f g, L (fun x => f x + g x) = L f + L g) /\
  (forall c f, L (fun x => c * f x) = c * L f).
Definition Expectation {A : Type} (E : (A -> R) -> R) : Prop :=
  Linear E /\ E (fun _ => 1) = 1 /\ (forall f, (forall x, 0 <= f x) -> 0 <= E f).
(* A sign that asks of what stands under it no more than its values: a derivative, a limit. *)
Definition Extensional {A : Type} (L : (A -> R) -> R) : Prop := forall f g, (forall x, f x = g x) -> L f = L g.

Lemma linear_ext : forall A (L : (A -> R) -> R) f g, Linear L -> (forall x, f x = g x) -> L f = L g.
Proof. intros A L f g [ext _]; auto. Qed.

Lemma linear_plus : forall A (L : (A -> R) -> R) f g, Linear L -> L (fun x => f x + g x) = L f + L g.
Proof. intros A L f g [_ [plus _]]; auto. Qed.

Lemma linear_scale : forall A (L : (A -> R) -> R) c f, Linear L -> L (fun x => c * f x) = c * L f.
Proof. intros A L c f [_ [_ scale]]; auto. Qed.

Lemma linear_sum : forall A (L : (A -> R) -> R) lo hi (f : Z -> A -> R), Linear L ->
  L (fun x => sum lo hi (fun i => f i x)) = sum lo hi (fun i => L (f i)).
Proof.
  intros A L lo hi f linear; by_induction lo hi.
  - rewrite (linear_ext _ L _ (fun x => 0 * 0)); [rewrite linear_scale; [ring | assumption] | assumption |].
    intros; rewrite sum_empty by assumption; ring.
  - rewrite (linear_ext _ L _ (fun x => f lo x + sum (lo + 1) hi (fun i => f i x))); [| assumption |].
    + rewrite linear_plus, IH by assumption; reflexivity.
    + intros; rewrite sum_first by assumption; reflexivity.
Qed.

Lemma expectation_linear : forall A (E : (A -> R) -> R), Expectation E -> Linear E.
Proof. intros A E [linear _]; exact linear. Qed.

(* --- powers, roots and logarithms --- *)
Lemma power_exp : forall x y, Rpower x y = exp (y * ln x).
Proof. reflexivity. Qed.

Lemma exp_times : forall n x, exp (INR n * x) = exp x ^ n.
Proof.
  induction n as [| n IH]; intros; [rewrite Rmult_0_l; exact exp_0 |].
  rewrite S_INR; replace ((INR n + 1) * x) with (x + INR n * x) by ring; rewrite exp_plus, IH; reflexivity.
Qed.

Lemma root_square : forall x, 0 <= x -> sqrt x * sqrt x = x.
Proof. exact sqrt_sqrt. Qed.

Lemma square_nonneg : forall x, 0 <= x ^ 2.
Proof. intros; replace (x ^ 2) with (Rsqr x) by (unfold Rsqr; ring); apply Rle_0_sqr. Qed.

Lemma exp_below_1 : forall x, 0 <= (-1) * x -> 0 <= 1 + (-1) * exp x.
Proof.
  intros x below; assert (exp x <= 1); [| lra].
  rewrite <- exp_0; destruct (Rle_lt_or_eq_dec x 0) as [less | same]; [lra | | subst; lra].
  apply Rlt_le, exp_increasing; assumption.
Qed.

(* --- signs --- *)
Ltac sign :=
  cbv beta;
  match goal with
  | |- 0 <= exp _ => apply Rlt_le, exp_pos
  | |- 0 < exp _ => apply exp_pos
  | |- 0 <= 1 + (-1) * exp _ => apply exp_below_1; ring_simplify; sign
  | |- 0 <= delta _ _ => apply delta_nonneg
  | |- 0 <= sqrt _ => apply sqrt_pos
  | |- 0 < sqrt _ => apply sqrt_lt_R0; sign
  | |- 0 < PI => exact PI_RGT_0
  | |- 0 <= PI => apply Rlt_le; exact PI_RGT_0
  | |- 0 <= sum _ _ _ => apply sum_nonneg; intros; sign
  | |- 0 < sum _ _ _ => apply sum_pos; [lia | intros; sign]
  | |- 0 <= IZR _ => first [lra | apply IZR_le; lia]
  | |- 0 < IZR _ => first [lra | apply IZR_lt; lia]
  | |- 0 <= _ ^ 2 => apply square_nonneg
  | |- 0 <= _ ^ 4 => replace 4%nat with (2 * 2)%nat by reflexivity; rewrite pow_mult; apply square_nonneg
  | |- 0 <= _ ^ _ => apply pow_le; sign
  | |- 0 < _ ^ _ => apply pow_lt; sign
  | |- 0 <= / _ => apply Rlt_le, Rinv_0_lt_compat; sign
  | |- 0 < / _ => apply Rinv_0_lt_compat; sign
  | |- 0 <= _ / _ => apply Rmult_le_pos; sign
  | |- 0 < _ / _ => apply Rmult_lt_0_compat; sign
  | |- 0 <= ?x * ?x => apply Rle_0_sqr
  | |- 0 <= _ * _ => first [solve [apply Rmult_le_pos; sign] | lra]
  | |- 0 < _ * _ => first [solve [apply Rmult_lt_0_compat; sign] | lra]
  | |- 0 <= _ + _ => first [lra | solve [apply Rplus_le_le_0_compat; sign]]
  | |- 0 < _ + _ => first [lra | solve [apply Rplus_lt_le_0_compat; sign] | solve [apply Rplus_le_lt_0_compat; sign]]
  | |- 0 <= _ => first [assumption | solve [auto] | apply Rlt_le; solve [auto] | lra]
  | |- 0 < _ => first [assumption | solve [auto] | lra]
  end.

(* What is divided by is not 0: it has a sign, or a premise says so. *)
Ltac other_than_0 :=
  match goal with
  | |- _ /\ _ => split; other_than_0
  | |- ?x <> 0 =>
      first [assumption
            | apply Rgt_not_eq; unfold Rgt; solve [sign]
            | apply Rlt_not_eq; lra
            | match goal with H : ?y <> 0 |- _ => solve [let zero := fresh in intro zero; apply H; nsatz] end]
  | |- True => exact I
  end.

(* --- tactics that the proofs name --- *)
Lemma at_most_by_gap : forall x y gap, x + gap = y -> 0 <= gap -> x <= y.
Proof. intros; lra. Qed.
Lemma at_least_by_gap : forall x y gap, x + (-1) * gap = y -> 0 <= gap -> x >= y.
Proof. intros; lra. Qed.

Ltac izr := rewrite ?plus_IZR, ?minus_IZR, ?mult_IZR, ?opp_IZR.
Ltac izr_in H := rewrite ?plus_IZR, ?minus_IZR, ?mult_IZR, ?opp_IZR in H.

(* A root becomes a number whose square is known. *)
Ltac name_roots :=
  repeat match goal with
  | |- context [sqrt ?x] =>
      let root := fresh "root" in let square := fresh "square" in
      assert (square : sqrt x * sqrt x = x) by (apply sqrt_sqrt; solve [sign]);
      first [assert (0 < x) by solve [sign]; assert (0 < sqrt x) by (apply sqrt_lt_R0; assumption)
            | assert (0 <= sqrt x) by apply sqrt_pos];
      set (root := sqrt x) in *; clearbody root;
      lazymatch x with
      | _ + _ => idtac
      | _ * _ => idtac
      | / _ => idtac
      | IZR ?n => try (is_var n; rewrite <- square)
      | _ => try rewrite <- square
      end
  end.
Ltac squares_known :=
  match goal with
  | H1 : ?a * ?a = _, H2 : ?b * ?b = _ |- _ => field [H1 H2]
  | H1 : ?a * ?a = _ |- _ => field [H1]
  end.
Ltac circles :=
  repeat match goal with
  | |- context [sin ?x] =>
      let s := fresh "s" in let c := fresh "c" in
      let H := fresh "circle" in
      assert (H : sin x * sin x = 1 - cos x * cos x) by (pose proof (sin2_cos2 x) as E; unfold Rsqr in E; lra);
      set (s := sin x) in *; set (c := cos x) in *; clearbody s c
  end.
Ltac deltas :=
  repeat match goal with
  | |- context [delta ?i ?j] => let H := fresh in destruct (delta_cases i j) as [H | H]; rewrite H in *; clear H
  end.
Ltac finish :=
  first [reflexivity | ring | solve [izr; field; other_than_0]
        | solve [progress name_roots; izr; first [ring | field; other_than_0 | squares_known; other_than_0]]
        | solve [progress deltas; izr; first [ring | field; other_than_0]]
        | solve [progress circles; izr; first [ring | squares_known; other_than_0]]
        | lra].
Ltac finish_by_premises := first [finish | solve [nsatz]].
Ltac exp_as total :=
  match goal with |- exp ?u = _ => replace u with total by finish end;
  rewrite ?exp_plus, ?exp_Ropp, ?exp_0, ?exp_ln by solve [sign | lra]; finish.
Ltac ln_as total :=
  match goal with |- ln ?u = _ => replace u with total by finish end;
  rewrite ?ln_mult, ?ln_Rinv, ?ln_exp, ?ln_1 by solve [sign]; finish.
Ltac circular_as total :=
  match goal with
  | |- sin ?u = _ => replace u with total by finish
  | |- cos ?u = _ => replace u with total by finish
  end;
  rewrite ?sin_plus, ?cos_plus, ?sin_neg, ?cos_neg, ?sin_0, ?cos_0; finish.
Ltac root := apply sqrt_lem_1; [solve [sign] | solve [sign] | finish].
Ltac split_sum :=
  first [apply sum_scale | etransitivity; [apply sum_plus | apply (f_equal2 Rplus); split_sum]].
Ltac split_linear L H :=
  first [apply (linear_scale _ L _ _ H)
        | etransitivity; [apply (linear_plus _ L _ _ H) | apply (f_equal2 Rplus); split_linear L H]].
Ltac closed_form lo hi F :=
  rewrite (sum_telescopes lo hi _ F); [izr; finish | lia | intros; cbv beta; izr; finish].
Ltac collapse lo hi j f :=
  transitivity (sum lo hi (fun i => delta i j * f i));
  [apply sum_ext; intros; cbv beta; first [finish | match goal with |- context [delta j ?i] => rewrite (delta_swap j i); finish end]
  | rewrite (sum_delta lo hi j f) by lia; cbv beta; izr].
Ltac solve_for H := first [exact H | lra | solve [rewrite H; finish] | solve [field_simplify_eq; lra] | solve [nsatz]].
